"""A siamese convolutional network from images to clouds, trained on balanced pairs.

Architecture and training are those of the code behind the MNIST report (Ghermi), whose values are
in configs/wasserstein_embed/images.py.
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt8

from common.arrays import AnyArray
from common.errors import UserError
from common.linear import unit
from common.parallel import all_parts, on_cpu, value_and_gradient
from common.run.train import Metrics, State
from wasserstein_embed import cloud
from wasserstein_embed.cloud import Clouds, Distance

# Images of one block on a CPU. The cache holds their patches, and a gradient computes them again
# rather than storing those of the whole batch: 1.8 times as fast as one block of 256.
BLOCK_IMAGES = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class Network:
    """Architecture of the network and normalisation of its input; static under jit."""

    image_shape: tuple[int, int, int]  # height, width and channels; at least 16 x 16 pixels
    num_points: int  # M
    dimensions: int  # k
    weights: str  # 'uniform' or 'learned' weights of the points
    unit_norm: bool  # whether the M k numbers of an image are a unit vector
    pixel_mean: float  # subtracted from pixel values from 0 to 1
    pixel_std: float  # by which they are divided


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """Settings of the training; static under jit."""

    network: Network
    distance: Distance | None  # None for the Euclidean distance of the M k numbers of a cloud
    temperature: float | None  # of `cosine_loss`; None for `contrastive_loss`
    margin: float  # distance beyond which pairs of two classes have no loss
    loss_power: float  # p of `contrastive_loss`
    batch_size: int  # number of pairs, even
    steps: int
    learning_rate: float  # of Adam
    decay_after: float  # fraction of the steps after which the learning rate falls to a tenth


class Classes(NamedTuple):
    """Images sorted by class: those of class c are order[start[c] : start[c] + count[c]]."""

    order: Int[Array, " n"]  # rows of the images, class by class
    start: Int[Array, " c"]
    count: Int[Array, " c"]
    label: Int[Array, " n"]  # class of each image, from 0 to c - 1
    rank: Int[Array, " n"]  # position of each image among those of its class


class Pairs(NamedTuple):
    """Pairs of images, given by their rows, and whether both are of one class."""

    first: Int[Array, " b"]
    second: Int[Array, " b"]
    same: Bool[Array, " b"]


class Batch(NamedTuple):
    """Pairs of images, the first and the second ones, and whether both are of one class."""

    images: UInt8[Array, "b 2 h w c"]
    label: Int[Array, "b 2"]
    place: Int[Array, "b 2"]  # among all images of the batch, of which a device has a part
    same: Bool[Array, " b"]


class Data(NamedTuple):
    """Training images, their classes, and the random key of the batches."""

    images: UInt8[Array, "n h w c"]
    classes: Classes
    key: jax.Array


class Siamese(nnx.Module):
    """Maps images to M points in R^k; each PReLU has one slope per layer, as in PyTorch."""

    def __init__(self, network: Network, rngs: nnx.Rngs):
        self.network = network
        height, width, channels = network.image_shape
        if network.weights not in ("uniform", "learned"):
            raise UserError(f"There are no '{network.weights}' weights: take uniform or learned.")
        self.learned_weights = network.weights == "learned"
        flat = ((height - 4) // 2 - 4) // 2 * (((width - 4) // 2 - 4) // 2) * 64
        out = network.num_points * (network.dimensions + self.learned_weights)
        self.conv1 = _convolution(channels, 32, rngs)
        self.conv2 = _convolution(32, 64, rngs)
        self.linear1 = nnx.Linear(flat, 256, **_pytorch_init(flat), rngs=rngs)
        self.linear2 = nnx.Linear(256, 256, **_pytorch_init(256), rngs=rngs)
        self.linear3 = nnx.Linear(256, out, **_pytorch_init(256), rngs=rngs)
        self.prelus = nnx.List([nnx.PReLU(0.25) for _ in range(4)])

    def __call__(self, images: UInt8[Array, "b h w c"]) -> Clouds:
        network = self.network
        x = (images.astype(jnp.float32) / 255.0 - network.pixel_mean) / network.pixel_std
        x = _max_pool(self.prelus[0](self.conv1(x)))
        x = _max_pool(self.prelus[1](self.conv2(x)))
        x = self.prelus[2](self.linear1(x.reshape(len(x), -1)))
        x = self.linear3(self.prelus[3](self.linear2(x)))
        size = network.num_points * network.dimensions
        points = unit(x[:, :size]) if network.unit_norm else x[:, :size]
        points = points.reshape(-1, network.num_points, network.dimensions)
        return Clouds(points, jax.nn.softmax(x[:, size:]) if self.learned_weights else None)


@partial(jax.jit, static_argnums=0)
def init(settings: Training, key: jax.Array) -> State:
    """Random parameters and a new optimiser."""
    parameters = nnx.state(Siamese(settings.network, nnx.Rngs(key)))
    return State.init(parameters, optimiser(settings))


def optimiser(settings: Training) -> optax.GradientTransformation:
    """Adam, whose learning rate falls to a tenth after `decay_after` of the steps."""
    boundary = {round(settings.decay_after * settings.steps): 0.1}
    return optax.adam(optax.piecewise_constant_schedule(settings.learning_rate, boundary))


def embed(network: Network, images: UInt8[Array, "b h w c"], parameters: nnx.State) -> Clouds:
    """The clouds of images with pixel values from 0 to 255."""
    graph = nnx.graphdef(nnx.eval_shape(lambda: Siamese(network, nnx.Rngs(0))))

    def clouds(images):
        return nnx.merge(graph, parameters)(images)

    if not on_cpu():
        return clouds(images)
    n, size = len(images), min(BLOCK_IMAGES, len(images))
    images = jnp.pad(images, ((0, -n % size), (0, 0), (0, 0), (0, 0)))
    blocks = lax.map(jax.checkpoint(clouds), images.reshape(-1, size, *images.shape[1:]))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:n], blocks)


def contrastive_loss(
    distance: Float[Array, " b"], same: Bool[Array, " b"], settings: Training
) -> Float[Array, ""]:
    """Mean over pairs of [r d^p + (1 - r) max(0, margin - d)^p] / p, r = 1 within a class.

    The power p is 2 in section 3 of the report and in its code, and 1 in section 4.1.
    """
    losses = cloud.contrastive_losses(distance, same, settings.margin, settings.loss_power)
    return losses.mean() / settings.loss_power


def group_by_class(labels: Int[np.ndarray, " n"]) -> Classes:
    """Sorts images by class, numbered without gaps; UserError: one class, or one of one image."""
    _, label, count = np.unique(labels, return_inverse=True, return_counts=True)
    if len(count) < 2 or count.min() < 2:
        raise UserError(
            f"A split has {len(count)} classes, the smallest of {count.min()} images: pairs need "
            "two classes or more, of at least two images each; choose a larger split."
        )
    order = np.argsort(label, kind="stable")
    start = np.concatenate([[0], np.cumsum(count)[:-1]])
    rank = np.empty(len(label), int)
    rank[order] = np.arange(len(label)) - np.repeat(start, count)
    arrays = {"order": order, "start": start, "count": count, "label": label, "rank": rank}
    return Classes(**{name: jnp.asarray(array, jnp.int32) for name, array in arrays.items()})


def sample_pairs(key: jax.Array, classes: Classes, num_pairs: int) -> Pairs:
    """Samples random pairs of images, alternately of one class and of two classes.

    The first image is uniform over all images. The second is uniform over the other images of its
    class, or over the images of a uniformly chosen other class.
    """
    image, class_, within = jax.random.split(key, 3)
    first = jax.random.randint(image, (num_pairs,), 0, len(classes.label))
    same = jnp.arange(num_pairs) % 2 == 0
    shift = jax.random.randint(class_, (num_pairs,), 1, len(classes.count))
    label = (classes.label[first] + jnp.where(same, 0, shift)) % len(classes.count)
    count = classes.count[label]
    # Candidates of the same class are the count - 1 images after the first, cyclically.
    step = jax.random.randint(within, (num_pairs,), 0, jnp.where(same, count - 1, count))
    rank = jnp.where(same, (classes.rank[first] + 1 + step) % count, step)
    return Pairs(first, classes.order[classes.start[label] + rank], same)


def batch_loss(
    parameters: nnx.State, batch: Batch, settings: Training
) -> tuple[Float[Array, ""], Metrics]:
    """The loss of a batch, and the mean distances of its pairs of one class and of two."""
    first_then_second = [x.swapaxes(0, 1).reshape(-1, *x.shape[2:]) for x in batch[:3]]
    images, label, place = first_then_second
    clouds = embed(settings.network, images, parameters)
    row = jnp.arange(len(batch.same))
    distance = cloud.pair_distances(clouds, row, row + len(row), settings.distance)
    if settings.temperature is None:
        loss = contrastive_loss(distance, batch.same, settings)
    else:
        vectors = clouds.points.reshape(len(images), -1)
        loss = cosine_loss(vectors, label, place, settings.temperature)
    return loss, mean_distances(distance, batch.same)


def step(
    state: State, index: Int[Array, ""], data: Data, settings: Training
) -> tuple[State, Metrics]:
    """One Adam step on a batch of balanced pairs, sharded over the devices."""
    key = jax.random.fold_in(data.key, index)
    first, second, same = sample_pairs(key, data.classes, settings.batch_size)
    rows = jnp.stack([first, second], axis=1)
    place = jnp.arange(rows.size).reshape(2, -1).T
    batch = Batch(data.images[rows], data.classes.label[rows], place, same)
    loss_of = partial(batch_loss, settings=settings)
    (loss, means), gradient = value_and_gradient(loss_of, state.parameters, batch)
    return state.update(gradient, optimiser(settings)), {"loss": loss, **means}


def cosine_loss(
    x: Float[AnyArray, "b d"],
    label: Int[AnyArray, " b"],
    place: Int[AnyArray, " b"],
    temperature: float,
) -> Float[Array, ""]:
    """The loss of SimCLR with known classes, without transport (Khosla et al. 2020, equation 2).

    With unit vectors x_i of the images of a batch, the others A(i), those of its class P(i), and
    the temperature t, the mean over the images i of

      -1 / |P(i)| sum_{p in P(i)} log(exp(<x_i, x_p> / t) / sum_{a in A(i)} exp(<x_i, x_a> / t)).

    On several devices x, label and place (in the whole batch) are those of a part of the batch.
    """
    whole_x, whole_label, whole_place = all_parts((x, label, place))
    apart = place[:, None] != whole_place
    same = apart & (label[:, None] == whole_label)
    logits = jnp.where(apart, x @ whole_x.T / temperature, -jnp.inf)
    log_fractions = jnp.where(same, jax.nn.log_softmax(logits), 0)
    count = jnp.maximum(1, jnp.sum(same, axis=1)).astype(log_fractions.dtype)
    return -jnp.mean(jnp.sum(log_fractions, axis=1) / count)


def mean_distances(distance: Float[Array, " b"], same: Bool[Array, " b"]) -> Metrics:
    """Mean distance of pairs of one class and of pairs of two classes, half of the pairs each."""
    return {
        "positive": 2 * jnp.where(same, distance, 0).mean(),
        "negative": 2 * jnp.where(same, 0, distance).mean(),
    }


def _convolution(inputs: int, outputs: int, rngs: nnx.Rngs) -> nnx.Conv:
    convolve = _patch_product if on_cpu() else lax.conv_general_dilated
    options = {"padding": "VALID", "conv_general_dilated": convolve}
    return nnx.Conv(inputs, outputs, (5, 5), **options, **_pytorch_init(25 * inputs), rngs=rngs)


def _pytorch_init(fan_in: int) -> dict:
    """PyTorch's default, by which the report was made: uniform within 1 / sqrt(fan_in)."""
    bound = fan_in**-0.5

    def uniform(key, shape, dtype, *_):
        return jax.random.uniform(key, shape, dtype, -bound, bound)

    return {"kernel_init": uniform, "bias_init": uniform}


def _patch_product(x, kernel, *_, **__):
    """The convolution as one matrix product with all patches.

    On a CPU inside a scan XLA's own convolution takes 20 times as long: 7 s instead of .3 s for a
    step of 128 pairs.
    """
    h, w = (size - 4 for size in x.shape[1:3])
    for axis, size in ((2, w), (1, h)):  # in the order of the kernel's axes: height, width, channel
        shifted = [lax.slice_in_dim(x, i, i + size, axis=axis) for i in range(5)]
        x = jnp.concatenate(shifted, axis=-1)
    return x @ kernel.reshape(-1, kernel.shape[-1])


def _max_pool(x: Float[Array, "b h w c"]) -> Float[Array, "b h2 w2 c"]:
    """Maxima over 2 x 2 pixels; an odd last row or column is dropped."""
    b, h, w, c = x.shape
    x = x[:, : h // 2 * 2, : w // 2 * 2]
    return x.reshape(b, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))
