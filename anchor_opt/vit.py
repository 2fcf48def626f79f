"""A vision transformer (Dosovitskiy et al. 2021): image to features, classifier, training step.

Architecture as timm's `vit_*_patch*`, so that weights exported from there fit
(`anchor_opt/weights.py`).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float, Int, Num, UInt8
from tqdm import tqdm

from anchor_opt.relative import unit


class Shape(NamedTuple):
    """What determines the parameters of a ViT and how it reads an image."""

    image: tuple[int, int, int]  # height, width, channels
    patch: int  # side of a patch in pixels
    width: int
    depth: int
    heads: int
    classes: int  # 0: no classification layer
    pool: str  # 'token': the class token; 'mean': mean over the patches
    mean: tuple[float, ...]  # of pixels from 0 to 1: one, or one a channel
    std: tuple[float, ...]


class Block(nnx.Module):
    """One transformer encoder layer, normalised before attention and before the perceptron."""

    def __init__(self, width: int, heads: int, rngs: nnx.Rngs):
        self.heads = heads
        self.norm1 = nnx.LayerNorm(width, epsilon=1e-6, rngs=rngs)
        self.qkv = nnx.Linear(width, 3 * width, rngs=rngs)
        self.proj = nnx.Linear(width, width, rngs=rngs)
        self.norm2 = nnx.LayerNorm(width, epsilon=1e-6, rngs=rngs)
        self.fc1 = nnx.Linear(width, 4 * width, rngs=rngs)
        self.fc2 = nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, x: Float[Array, "b l d"]) -> Float[Array, "b l d"]:
        qkv = self.qkv(self.norm1(x)).reshape(*x.shape[:2], 3, self.heads, -1)
        attended = jax.nn.dot_product_attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2])
        x = x + self.proj(attended.reshape(x.shape))
        return x + self.fc2(jax.nn.gelu(self.fc1(self.norm2(x)), approximate=False))


class ViT(nnx.Module):
    """Images to features, and features to classes."""

    def __init__(self, shape: Shape, rngs: nnx.Rngs):
        self.shape = shape
        height, width, channels = shape.image
        tokens = 1 + (height // shape.patch) * (width // shape.patch)
        # As large as the embedded patches: from the usual .02 a short training learns no position.
        large = nnx.initializers.normal(0.5)
        self.embed = nnx.Linear(shape.patch**2 * channels, shape.width, rngs=rngs)
        self.token = nnx.Param(large(rngs.params(), (shape.width,)))
        self.positions = nnx.Param(large(rngs.params(), (tokens, shape.width)))
        self.blocks = nnx.List([Block(shape.width, shape.heads, rngs) for _ in range(shape.depth)])
        self.norm = nnx.LayerNorm(shape.width, epsilon=1e-6, rngs=rngs)
        if shape.classes:
            self.head = nnx.Linear(shape.width, shape.classes, rngs=rngs)

    def features(self, images: UInt8[Array, "b h w c"]) -> Float[Array, "b d"]:
        """Pooled features of images of 0 to 255, before the classification layer."""
        x = (images / 255.0 - jnp.array(self.shape.mean)) / jnp.array(self.shape.std)
        b, h, w, c = x.shape
        p = self.shape.patch
        x = x.reshape(b, h // p, p, w // p, p, c).swapaxes(2, 3).reshape(b, -1, p * p * c)
        x = self.embed(x)
        token = jnp.broadcast_to(self.token[...], (b, 1, x.shape[-1]))
        x = jnp.concatenate([token, x], axis=1) + self.positions[...]
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return x[:, 0] if self.shape.pool == "token" else x[:, 1:].mean(axis=1)

    def __call__(self, images: UInt8[Array, "b h w c"]) -> Float[Array, "b classes"]:
        return self.head(self.features(images))


class Training(NamedTuple):
    """Static choices of the training; see configs/anchor_opt/vision.py."""

    shape: Shape
    steps: int
    batch: int
    learning_rate: float
    warmup: float  # share of the steps
    weight_decay: float
    shift: int  # pixels, at most, by which an image is moved at random
    contrast: float  # weight of the contrastive loss; 0: a classifier alone
    temperature: float  # of the contrastive loss


class State(NamedTuple):
    """Parameters and the state of the optimiser."""

    parameters: nnx.State
    optimiser: optax.OptState


class Data(NamedTuple):
    """What the steps read."""

    images: UInt8[Array, "n h w c"]
    labels: Int[Array, " n"]
    key: jax.Array


def optimiser(settings: Training) -> optax.GradientTransformation:
    """AdamW with a linear warmup and a cosine decay."""
    schedule = optax.warmup_cosine_decay_schedule(
        0.0, settings.learning_rate, round(settings.warmup * settings.steps), settings.steps
    )
    return optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(schedule, b2=0.98, weight_decay=settings.weight_decay),
    )


@partial(jax.jit, static_argnums=0)
def init(settings: Training, random_seed: int) -> State:
    """Random parameters."""
    parameters = nnx.state(ViT(settings.shape, nnx.Rngs(jax.random.key(random_seed))))
    return State(parameters, optimiser(settings).init(parameters))


def with_parameters(shape: Shape, parameters: nnx.State) -> ViT:
    """The model of that shape with those parameters."""
    graph = nnx.graphdef(nnx.eval_shape(lambda: ViT(shape, nnx.Rngs(0))))
    return nnx.merge(graph, parameters)


def step(state: State, index, data: Data, settings: Training) -> tuple[State, dict]:
    """One step on a random batch, each image moved by a few pixels at random.

    Cross-entropy plus `contrast` times the contrastive loss (InfoNCE, Chen et al. 2020) between the
    features of two moved copies. A classifier alone need not tell the images of a class apart.
    """
    draw, *moves = jax.random.split(jax.random.fold_in(data.key, index), 3)
    rows = jax.random.randint(draw, (settings.batch,), 0, len(data.labels))
    images, labels = data.images[rows], data.labels[rows]
    copies = [shifted(move, images, settings.shift) for move in moves]

    def loss(parameters):
        model = with_parameters(settings.shape, parameters)
        features = model.features(copies[0])
        logits = model.head(features)
        value = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        if settings.contrast:
            others = model.features(copies[1])
            value += settings.contrast * contrastive(features, others, settings.temperature)
        return value, (logits.argmax(axis=1) == labels).mean()

    (value, accuracy), gradient = jax.value_and_grad(loss, has_aux=True)(state.parameters)
    updates, moments = optimiser(settings).update(gradient, state.optimiser, state.parameters)
    new = State(optax.apply_updates(state.parameters, updates), moments)
    return new, {"loss": value, "accuracy": accuracy}


def contrastive(
    first: Float[Array, "b d"], second: Float[Array, "b d"], temperature: float
) -> Float[Array, ""]:
    """InfoNCE: each row has to find its copy among all rows of the other batch, both ways."""
    similarity = unit(first) @ unit(second).T / temperature
    own = jnp.arange(len(first))
    losses = [
        optax.softmax_cross_entropy_with_integer_labels(scores, own).mean()
        for scores in (similarity, similarity.T)
    ]
    return sum(losses) / 2


def shifted(key: jax.Array, images: UInt8[Array, "b h w c"], most: int) -> UInt8[Array, "b h w c"]:
    """Moves each image by up to `most` pixels in both directions, zeros (black) coming in."""
    offsets = jax.random.randint(key, (len(images), 2), 0, 2 * most + 1)
    padded = jnp.pad(images, ((0, 0), (most, most), (most, most), (0, 0)))

    def one(image, offset):
        return jax.lax.dynamic_slice(image, (*offset, 0), images.shape[1:])

    return jax.vmap(one)(padded, offsets)


def fitted(
    images: UInt8[Array, "b h w c"], shape: tuple[int, int, int]
) -> Num[Array, "b h2 w2 c2"]:
    """Images of 0 to 255 in the size and channels that a model reads; grey becomes all colours."""
    if images.shape[1:3] != shape[:2]:
        size = (len(images), *shape[:2], images.shape[3])
        images = jax.image.resize(images.astype(jnp.float32), size, "bicubic").clip(0, 255)
    if images.shape[3] == 1:
        images = jnp.repeat(images, shape[2], axis=3)
    return images


def encode(
    model: ViT, images: UInt8[np.ndarray, "n h w c"], *, batch: int, progress: str = ""
) -> Float[np.ndarray, "n d"]:
    """Pooled features of all images, a batch at a time.

    Args:
      model: any; images of another size are resized to its own.
      images: of 0 to 255, grey or with the model's channels.
      batch: images a step; the last one is padded.
      progress: label of the progress bar.
    """
    graph, parameters = nnx.split(model)

    @jax.jit
    def run(parameters, images):
        return nnx.merge(graph, parameters).features(fitted(images, model.shape.image))

    out = []
    # Accelerators round a matrix product's factors by default: other vectors on every machine.
    with jax.default_matmul_precision("float32"):
        for start in tqdm(range(0, len(images), batch), desc=progress, unit="batch", delay=2):
            rows = images[start : start + batch]
            padding = [(0, batch - len(rows)), (0, 0), (0, 0), (0, 0)]
            out.append(np.asarray(run(parameters, np.pad(rows, padding)))[: len(rows)])
    return np.concatenate(out)
