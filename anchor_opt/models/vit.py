"""A vision transformer (Dosovitskiy et al. 2021): image to features, classifier, training step."""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float, Int, UInt8

from common.arrays import AnyArray, WholeNumber
from common.linear import unit
from common.parallel import all_parts, value_and_gradient
from common.progress import progress_bar
from common.run.train import State


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes of a ViT."""

    image: tuple[int, int, int]  # height and width in pixels, channels
    patch: int  # side of a patch in pixels
    width: int  # dimensions of a token
    depth: int  # number of blocks
    heads: int  # attention heads of a block
    classes: int  # outputs of the classification layer


class Block(nnx.Module):
    """A transformer encoder layer with LayerNorm before the attention and before the MLP."""

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
    """Maps images to features, and features to classes."""

    def __init__(self, shape: Shape, rngs: nnx.Rngs):
        self.shape = shape
        height, width, channels = shape.image
        tokens = 1 + (height // shape.patch) * (width // shape.patch)
        # The standard deviation is about that of the embedded patches. With the usual 0.02 a short
        # training does not learn the positions.
        normal = nnx.initializers.normal(0.5)
        self.embed = nnx.Linear(shape.patch**2 * channels, shape.width, rngs=rngs)
        self.token = nnx.Param(normal(rngs.params(), (shape.width,)))
        self.positions = nnx.Param(normal(rngs.params(), (tokens, shape.width)))
        self.blocks = nnx.List([Block(shape.width, shape.heads, rngs) for _ in range(shape.depth)])
        self.norm = nnx.LayerNorm(shape.width, epsilon=1e-6, rngs=rngs)
        self.head = nnx.Linear(shape.width, shape.classes, rngs=rngs)

    def features(self, images: UInt8[AnyArray, "b h w c"]) -> Float[Array, "b d"]:
        """The input of the classification layer: the mean over the patches of the last layer.

        Pixels from 0 to 255 are scaled to -1 to 1. The class token takes part in the attention. As
        the feature it gives the same MRR of GT as the mean, .60 (measured).
        """
        x = (jnp.asarray(images, jnp.float32) / 255.0 - 0.5) / 0.5
        b, h, w, c = x.shape
        p = self.shape.patch
        x = x.reshape(b, h // p, p, w // p, p, c).swapaxes(2, 3).reshape(b, -1, p * p * c)
        x = self.embed(x)  # pyright: ignore[reportArgumentType]  # Flax takes NumPy's arrays, too
        token = jnp.broadcast_to(self.token[...], (b, 1, x.shape[-1]))
        x = jnp.concatenate([token, x], axis=1) + self.positions[...]
        for block in self.blocks:
            x = block(x)
        return self.norm(x)[:, 1:].mean(axis=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """Values of config.training in configs/anchor_opt/vision.py."""

    steps: int
    batch: int
    learning_rate: float  # the largest of the schedule
    warmup: float  # fraction of the steps in which the learning rate rises linearly
    weight_decay: float
    shift: int  # an image is shifted by at most so many pixels
    contrast: float  # weight of the contrastive loss beside cross-entropy; 0: none
    temperature: float  # of the contrastive loss


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Static settings of `step`."""

    shape: Shape
    training: Training


class Data(NamedTuple):
    """The training set."""

    images: UInt8[Array, "n h w c"]
    labels: Int[Array, " n"]
    key: jax.Array  # determines the batches and the shifts


def optimiser(training: Training) -> optax.GradientTransformation:
    """AdamW with gradients clipped to norm 1, a linear warmup and a cosine decay."""
    schedule = optax.warmup_cosine_decay_schedule(
        0.0, training.learning_rate, round(training.warmup * training.steps), training.steps
    )
    return optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(schedule, b2=0.98, weight_decay=training.weight_decay),
    )


@partial(jax.jit, static_argnums=0)
def init(settings: Settings, random_seed: WholeNumber) -> State:
    """Random parameters and the optimiser's first state."""
    parameters = nnx.state(ViT(settings.shape, nnx.Rngs(jax.random.key(random_seed))))
    return State.init(parameters, optimiser(settings.training))


def with_parameters(shape: Shape, parameters: nnx.State) -> ViT:
    """The model with the given shape and parameters."""
    graph = nnx.graphdef(nnx.eval_shape(lambda: ViT(shape, nnx.Rngs(0))))
    return nnx.merge(graph, parameters)


def step(state: State, index, data: Data, settings: Settings) -> tuple[State, dict]:
    """One step on a random batch of randomly shifted images, sharded over the devices.

    The loss is the cross-entropy plus `contrast` times the contrastive loss between the features of
    two shifted copies of each image. With cross-entropy alone the features need not distinguish the
    images of a class, which retrieval across encoders depends on.
    """
    training = settings.training
    draw, *shift_keys = jax.random.split(jax.random.fold_in(data.key, index), 3)
    rows = jax.random.randint(draw, (training.batch,), 0, len(data.labels))
    images, labels = data.images[rows], data.labels[rows]
    copies = [shifted(key, images, training.shift) for key in shift_keys]

    def loss(parameters, batch):
        first, second, labels, places = batch
        model = with_parameters(settings.shape, parameters)
        features = model.features(first)
        logits = model.head(features)
        value = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        if training.contrast:
            features = features, model.features(second)
            value += training.contrast * contrastive(*features, places, training.temperature)
        return value, (logits.argmax(axis=1) == labels).mean()

    batch = *copies, labels, jnp.arange(training.batch)
    (value, accuracy), gradient = value_and_gradient(loss, state.parameters, batch)
    return state.update(gradient, optimiser(training)), {"loss": value, "accuracy": accuracy}


def contrastive(
    first: Float[AnyArray, "b d"],
    second: Float[AnyArray, "b d"],
    places: Int[AnyArray, " b"],
    temperature: float,
) -> Float[Array, ""]:
    """InfoNCE loss (Chen et al. 2020), averaged over both directions.

    With s_ij = cos(first_i, second_j) / temperature, the mean of -log softmax_j(s_ij) at j = i and
    of -log softmax_i(s_ij) at i = j: row i of each batch has to identify row i of the other. Of a
    batch that is on several devices, the rows of one are at `places` of the whole batch.
    """
    sides = unit(first), unit(second)
    losses = [
        optax.softmax_cross_entropy_with_integer_labels(
            one @ all_parts(other).T / temperature, places
        ).mean()
        for one, other in (sides, sides[::-1])
    ]
    return jnp.asarray(sum(losses)) / 2


def shifted(key: jax.Array, images: UInt8[Array, "b h w c"], limit: int) -> UInt8[Array, "b h w c"]:
    """Shifts each image by at most `limit` pixels in both directions and pads it with zeros."""
    offsets = jax.random.randint(key, (len(images), 2), 0, 2 * limit + 1)
    padded = jnp.pad(images, ((0, 0), (limit, limit), (limit, limit), (0, 0)))

    def crop(image, offset):
        return jax.lax.dynamic_slice(image, (*offset, 0), images.shape[1:])

    return jax.vmap(crop)(padded, offsets)


def encode(
    model: ViT, images: UInt8[np.ndarray, "n h w c"], *, batch: int, progress: str = ""
) -> Float[np.ndarray, "n d"]:
    """Features of all images, `batch` of them at a time; `progress` labels the progress bar."""
    graph, parameters = nnx.split(model)
    run = jax.jit(lambda parameters, images: nnx.merge(graph, parameters).features(images))
    starts = progress_bar(range(0, len(images), batch), desc=progress, unit="batch", delay=2)
    # By default accelerators round the factors of a matrix product, which would give other features
    # on each kind of device.
    with jax.default_matmul_precision("float32"):
        return np.concatenate([run(parameters, images[i : i + batch]) for i in starts])
