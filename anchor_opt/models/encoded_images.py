"""The same images as two encoders represent them: trained here, pretrained, or the user's features.

Trained encoders and all encodings are kept in the cache directory, in files named by a hash of
everything that determines them.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Float, Int

from anchor_opt.models import vit
from common.data import array_cache
from common.data.readers import vector_files
from common.data.sets import images
from common.data.sets.images import Images
from common.errors import UserError, check_choice
from common.run import train
from common.run.workdir import Workdir
from common.spaces import image_features
from common.spaces.paired_spaces import PairedSpaces

CACHE_VERSION = 2  # raise it whenever the same settings give other encoders or encodings
BATCH = 100  # images encoded at once


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Images and encoders; configs/anchor_opt/vision.py explains each value."""

    dataset: str
    train_split: str
    test_split: str
    encoders: Mapping[str, Mapping[str, int]]  # name -> width, depth, heads and random_seed
    patch: int
    training: vit.Training


class EncodedImages(NamedTuple):
    """The test images in the two spaces."""

    pair: PairedSpaces  # row i of both is the same image
    labels: Int[np.ndarray, " n"] | None  # None if both are files of features
    notes: tuple[str, ...]  # sentences on the images and on each encoder


def load(names: tuple[str, str], values: Settings, work: Workdir, cache: Path) -> EncodedImages:
    """Encodes the test images with both encoders, or reads the user's own features.

    The names are those of encoders, or paths of files of features. Checkpoints of a training are
    kept in the run's folder, its result in the cache.

    UserError: an unknown encoder or image set, files that can't be read, spaces of different
    numbers of images, or sizes that do not fit.
    """
    files = [bool(Path(name).suffix) for name in names]
    split, labels, notes = "row", None, []
    if not all(files):
        test = images.load(values.dataset, values.test_split, cache)
        split, labels = test.split, test.labels
        notes.append(f"Images: {values.dataset}, {split}.")
    spaces = []
    for name, is_file in zip(names, files, strict=True):
        if is_file:
            spaces.append(vector_files.read(Path(name), distinct=False, progress=True).vectors)
        else:
            space, note = _encode(name, values, test, work, cache)
            spaces.append(space)
            notes.append(note)
    if len(spaces[0]) != len(spaces[1]):
        raise UserError(
            f"{names[0]} has {len(spaces[0])} rows and {names[1]} {len(spaces[1])}: row i of both "
            "has to be the same image."
        )
    rows = [f"{split} {i}" for i in range(len(spaces[0]))]
    return EncodedImages(PairedSpaces(rows, *spaces), labels, tuple(notes))


def _encode(
    name: str, values: Settings, test: Images, work: Workdir, cache: Path
) -> tuple[Float[np.ndarray, "n d"], str]:
    """The test images by an encoder, pretrained or trained here, and a sentence about it."""
    if name in image_features.ENCODERS:
        features = image_features.encode(name, test.images, cache)
        return features, f"{name}: {features.shape[1]} dimensions, pretrained on other images."
    check_choice("encoder", name, [*values.encoders, *image_features.ENCODERS])
    sizes, patch = dict(values.encoders[name]), values.patch
    random_seed = sizes.pop("random_seed")
    data = images.load(values.dataset, values.train_split, cache)
    height, width, channels = data.images.shape[1:]
    if sizes["width"] % sizes["heads"] or height % patch or width % patch:
        raise UserError(
            f"The encoder {name} does not fit: heads={sizes['heads']} has to divide "
            f"width={sizes['width']}, patch={patch} the images' {height} x {width} pixels."
        )
    classes = int(data.labels.max()) + 1
    shape = vit.Shape(image=(height, width, channels), patch=patch, classes=classes, **sizes)
    training = vit.Settings(shape=shape, training=values.training)
    trained = _trained(name, training, random_seed, data, work, cache)
    model = vit.with_parameters(shape, trained)
    parameters = map(np.asarray, jax.tree.leaves(nnx.state(model)))
    hashes = [array_cache.digest(*parameters), array_cache.digest(test.images)]
    recipe = [CACHE_VERSION, dataclasses.asdict(shape), *hashes]

    def encode() -> dict[str, np.ndarray]:
        progress = f"encoding {name}"
        return {"vectors": vit.encode(model, test.images, batch=BATCH, progress=progress)}

    features = array_cache.load_or_compute(cache / "encodings", name, recipe, encode)["vectors"]
    # Flax does not say that a layer has a bias by default.
    bias = model.head.bias[...]  # pyright: ignore[reportOptionalSubscript]
    predicted = (features @ model.head.kernel[...] + bias).argmax(axis=1)
    note = (
        f"{name}: {shape.width} dimensions, {shape.depth} blocks, {training.training.steps} "
        f"steps on {len(data.labels):,} other images, test accuracy "
        f"{(predicted == test.labels).mean():.3f}."
    )
    return features, note


def _trained(
    name: str, values: vit.Settings, random_seed: int, data: Images, work: Workdir, cache: Path
) -> nnx.State:
    """The parameters of an encoder, read from the cache or trained and written there."""
    template = jax.eval_shape(lambda: vit.init(values, random_seed).parameters)
    leaves, tree = jax.tree_util.tree_flatten_with_path(template)
    keys = [jax.tree_util.keystr(location) for location, _ in leaves]
    run = train.Stages(work, f"encoder-{name}")
    digest = array_cache.digest(data.images, data.labels)
    recipe = [CACHE_VERSION, dataclasses.asdict(values), random_seed, digest]

    def compute():
        key, steps = jax.random.key(random_seed), values.training.steps
        arrays = vit.Data(jnp.asarray(data.images), jnp.asarray(data.labels), key)
        begun = vit.init(values, random_seed)
        state = run(vit.step, begun, arrays, values, num_steps=steps, chunk=50)
        return dict(zip(keys, jax.tree.leaves(state.parameters), strict=True))

    arrays = array_cache.load_or_compute(cache / "encoders", name, recipe, compute)
    train.forget_checkpoints(work, run.part)
    return jax.tree.unflatten(tree, [arrays[key] for key in keys])
