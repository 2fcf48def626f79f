"""A siamese convolutional network from images to clouds, trained on balanced pairs.

Architecture and settings of the code behind the MNIST report (Ghermi; see configs).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt8

from common.parallel import mean_over_devices
from wasserstein_embed import cloud
from wasserstein_embed.cloud import Clouds, Distance

AT_ONCE = 32  # images on a CPU, whose columns of a convolution then stay in the cache: 1.3 times


class Shape(NamedTuple):
    """What determines the parameters of the network and how it reads an image."""

    image: tuple[int, int, int]  # height, width, channels
    points: int  # M
    dimensions: int  # k
    weights: bool  # whether the points' weights are learned as well
    mean: float  # of pixels from 0 to 1
    std: float


class Training(NamedTuple):
    """Static choices of the training; see configs/wasserstein_embed/images.py."""

    shape: Shape
    distance: Distance | None  # None: Euclidean, of the cloud as one vector
    margin: float
    batch: int  # pairs
    steps: int
    learning_rate: float
    decay_after: float  # share of the steps after which the learning rate falls to a tenth


class State(NamedTuple):
    """Parameters and the state of the optimiser."""

    parameters: nnx.State
    optimiser: optax.OptState


class Classes(NamedTuple):
    """Images by class: those of class c are order[start[c] : start[c] + count[c]]."""

    order: Int[Array, " n"]
    start: Int[Array, " c"]
    count: Int[Array, " c"]
    label: Int[Array, " n"]  # from 0 to c - 1
    place: Int[Array, " n"]  # of each image among those of its class


class Data(NamedTuple):
    """What the steps read."""

    images: UInt8[Array, "n h w c"]
    classes: Classes
    key: jax.Array


class Siamese(nnx.Module):
    """Images to M points in R^k; PReLU with one slope a layer, as PyTorch's default."""

    def __init__(self, shape: Shape, rngs: nnx.Rngs):
        self.shape = shape
        height, width, channels = shape.image
        flat = ((height - 4) // 2 - 4) // 2 * (((width - 4) // 2 - 4) // 2) * 64
        out = shape.points * (shape.dimensions + shape.weights)
        self.conv1 = _convolution(channels, 32, rngs)
        self.conv2 = _convolution(32, 64, rngs)
        self.linear1 = nnx.Linear(flat, 256, **_as_pytorch(flat), rngs=rngs)
        self.linear2 = nnx.Linear(256, 256, **_as_pytorch(256), rngs=rngs)
        self.linear3 = nnx.Linear(256, out, **_as_pytorch(256), rngs=rngs)
        self.prelus = nnx.List([nnx.PReLU(0.25) for _ in range(4)])

    def __call__(self, images: UInt8[Array, "b h w c"]) -> Clouds:
        if jax.default_backend() != "cpu":
            return self._clouds(images)
        n, size = len(images), min(AT_ONCE, len(images))
        images = jnp.pad(images, ((0, -n % size), (0, 0), (0, 0), (0, 0)))
        clouds = lax.map(self._clouds, images.reshape(-1, size, *images.shape[1:]))
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:n], clouds)

    def _clouds(self, images: UInt8[Array, "b h w c"]) -> Clouds:
        x = (images / 255.0 - self.shape.mean) / self.shape.std
        x = _pool(self.prelus[0](self.conv1(x)))
        x = _pool(self.prelus[1](self.conv2(x)))
        x = self.prelus[2](self.linear1(x.reshape(len(x), -1)))
        x = self.linear3(self.prelus[3](self.linear2(x)))
        size = self.shape.points * self.shape.dimensions
        points = x[:, :size].reshape(-1, self.shape.points, self.shape.dimensions)
        return Clouds(points, jax.nn.softmax(x[:, size:]) if self.shape.weights else None)


@partial(jax.jit, static_argnums=0)
def init(settings: Training, key: jax.Array) -> State:
    """Random parameters."""
    parameters = nnx.state(Siamese(settings.shape, nnx.Rngs(key)))
    return State(parameters, optimiser(settings).init(parameters))


def optimiser(settings: Training) -> optax.GradientTransformation:
    """Adam, whose learning rate falls to a tenth once."""
    fall = {round(settings.decay_after * settings.steps): 0.1}
    return optax.adam(optax.piecewise_constant_schedule(settings.learning_rate, fall))


def embed(shape: Shape, parameters: nnx.State, images: UInt8[Array, "b h w c"]) -> Clouds:
    """The clouds of images of 0 to 255."""
    graph = nnx.graphdef(nnx.eval_shape(lambda: Siamese(shape, nnx.Rngs(0))))
    return nnx.merge(graph, parameters)(images)


def distances(
    clouds: Clouds, first: Int[Array, " b"], second: Int[Array, " b"], distance: Distance | None
) -> Float[Array, " b"]:
    """By transport, or Euclidean for None."""
    if distance is None:
        return cloud.euclidean(clouds, first, second)
    return cloud.pairs(clouds, first, second, distance)


def contrastive(
    distance: Float[Array, " b"], same: Bool[Array, " b"], margin: float
) -> Float[Array, ""]:
    """Mean of [r d^2 + (1 - r) max(0, margin - d)^2] / 2, section 3 of the report."""
    apart = jnp.maximum(0.0, margin - distance)
    return jnp.mean(jnp.where(same, distance, apart) ** 2) / 2


def by_class(labels: Int[np.ndarray, " n"]) -> Classes:
    """Sorts images by class; classes are numbered anew, without gaps."""
    _, label, count = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.argsort(label, kind="stable")
    start = np.concatenate([[0], np.cumsum(count)[:-1]])
    place = np.empty(len(label), int)
    place[order] = np.arange(len(label)) - np.repeat(start, count)
    return Classes(*(jnp.asarray(x, jnp.int32) for x in (order, start, count, label, place)))


def draw(
    key: jax.Array, classes: Classes, number: int
) -> tuple[Int[Array, " b"], Int[Array, " b"], Bool[Array, " b"]]:
    """Random pairs, every other one of one class: rows of both images, and whether it is.

    The first image is any; the second another one of its class, or any of another class, which are
    equally likely. Classes need two images, of which there have to be two.
    """
    image, class_, within = jax.random.split(key, 3)
    first = jax.random.randint(image, (number,), 0, len(classes.label))
    same = jnp.arange(number) % 2 == 0
    other = jax.random.randint(class_, (number,), 1, len(classes.count))
    label = (classes.label[first] + jnp.where(same, 0, other)) % len(classes.count)
    count = classes.count[label]
    # Of its own class all but itself: the ones after it, in a circle.
    most = jnp.where(same, count - 1, count)
    step = jax.random.randint(within, (number,), 0, most)
    place = jnp.where(same, (classes.place[first] + 1 + step) % count, step)
    return first, classes.order[classes.start[label] + place], same


def step(state: State, index, data: Data, settings: Training) -> tuple[State, dict]:
    """One step on a batch of balanced pairs, sharded over the devices."""
    key = jax.random.fold_in(data.key, index)
    first, second, same = draw(key, data.classes, settings.batch)

    def part(rows, parameters):
        def loss(parameters):
            first, second, same = rows
            clouds = embed(settings.shape, parameters, jnp.concatenate([first, second]))
            row = jnp.arange(len(same))
            distance = distances(clouds, row, row + len(same), settings.distance)
            return contrastive(distance, same, settings.margin), means(distance, same)

        return jax.value_and_grad(loss, has_aux=True)(parameters)

    rows = data.images[first], data.images[second], same
    (loss, of_pairs), gradient = mean_over_devices(part, rows, state.parameters)
    updates, moments = optimiser(settings).update(gradient, state.optimiser, state.parameters)
    new = State(optax.apply_updates(state.parameters, updates), moments)
    return new, {"loss": loss} | of_pairs


def means(distance: Float[Array, " b"], same: Bool[Array, " b"]) -> dict[str, Float[Array, ""]]:
    """Mean distance of pairs of one class and of two, half of the pairs each."""
    return {
        "positive": 2 * jnp.where(same, distance, 0).mean(),
        "negative": 2 * jnp.where(same, 0, distance).mean(),
    }


def _convolution(inputs: int, outputs: int, rngs: nnx.Rngs) -> nnx.Conv:
    way = _by_columns if jax.default_backend() == "cpu" else lax.conv_general_dilated
    named = {"padding": "VALID", "conv_general_dilated": way}
    return nnx.Conv(inputs, outputs, (5, 5), **named, **_as_pytorch(25 * inputs), rngs=rngs)


def _as_pytorch(fan_in: int) -> dict:
    """Kernel and bias uniform within 1 / sqrt(fan_in): the default where the code was written."""
    bound = fan_in**-0.5

    def uniform(key, shape, dtype, *_):
        return jax.random.uniform(key, shape, dtype, -bound, bound)

    return {"kernel_init": uniform, "bias_init": uniform}


def _by_columns(x, kernel, *_, **__):
    """The convolution as one matrix product of all patches.

    XLA's own takes 20 times as long on a CPU inside a scan: 7 s for a step of 128 pairs, not .3.
    """
    h, w = (size - 4 for size in x.shape[1:3])
    for axis, size in ((2, w), (1, h)):  # kernels have height before width
        shifted = [lax.slice_in_dim(x, i, i + size, axis=axis) for i in range(5)]
        x = jnp.concatenate(shifted, axis=-1)
    return x @ kernel.reshape(-1, kernel.shape[-1])


def _pool(x: Float[Array, "b h w c"]) -> Float[Array, "b h2 w2 c"]:
    """Maxima over 2 x 2 pixels; an odd last row or column is left out."""
    b, h, w, c = x.shape
    x = x[:, : h // 2 * 2, : w // 2 * 2]
    return x.reshape(b, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))
