"""The programs that benchmarks/compile.py compiles and times, with the values of their configs.

A program is a function and a function that makes its arguments. The latter runs on the devices if
the program is timed, and is only traced for the shapes if the program is compiled for devices that
are described. Data are random: spaces are unit rows, of which the target's are the source's under a
random map, with noise.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from anchor_opt.methods import algorithm1, anchors, self_learning
from anchor_opt.models import head, vit
from common import cbow, csls, ot, retrieval
from common.linear import unit
from common.parallel import num_parts
from common.run.settings import settings
from configs.anchor_opt import retrieval as retrieval_config
from configs.anchor_opt import stitching as stitching_config
from configs.anchor_opt import vision as vision_config
from configs.embed_match.trained import embeddings
from configs.lpl import word_alignment as lpl_config
from configs.wasserstein_embed import graphs as graphs_config
from configs.wasserstein_embed import images as images_config
from configs.wasserstein_embed import words as words_config
from embed_match import glove, lstm
from lpl import loss, methods, training
from wasserstein_embed import cloud, metric_embed, siamese, word_embed

SOURCE_DIM, TARGET_DIM = 300, 384  # of Word2Vec and MiniLM
NUM_ANCHORS, NUM_PAIRS = 300, 15
KEY = 0


class Program(NamedTuple):
    """A function under jit.

    Attributes:
      function: takes the arguments.
      arguments: makes them; traced or run under jit.
      sizes: of the problem, for the table.
      trips: iterations of those loops whose number is only known when they run.
      bound: of the temporary memory of a device, in bytes for the given number of devices; none of
        the bounds has room for an array of all pairs of the rows.
    """

    function: Callable[..., Any]
    arguments: Callable[[], tuple]
    sizes: str
    trips: float = 1.0
    bound: Callable[[int], float] | None = None


def rows(n: int, dim: int, seed: int = KEY) -> Float[Array, "n d"]:
    """Random unit rows."""
    return unit(jax.random.normal(jax.random.key(seed), (n, dim)))


def spaces(n: int, *dims: int) -> list[Float[Array, "n d"]]:
    """Unit rows that correspond: random maps of the same rows, with noise."""
    hidden = jax.random.normal(jax.random.key(KEY), (n, 64))
    drawn = []
    for seed, dim in enumerate(dims):
        map_key, noise_key = jax.random.split(jax.random.key(seed + 1))
        space = hidden @ jax.random.normal(map_key, (64, dim)) / 8
        drawn.append(unit(space + 0.1 * jax.random.normal(noise_key, space.shape)))
    return drawn


def integers(shape: tuple[int, ...], limit: int, seed: int = KEY) -> Array:
    """Random integers below a limit."""
    return jax.random.randint(jax.random.key(seed), shape, 0, limit)


def algorithm1_step(n: int) -> Program:
    """One step of Algorithm 1: a matching of all rows and an update of Adam."""
    chosen = settings(algorithm1.Settings, retrieval_config.get_config().algorithm1)

    def arguments():
        source, target = spaces(n, SOURCE_DIM, TARGET_DIM)
        data = algorithm1.prepare(source, source[:NUM_ANCHORS], target, NUM_PAIRS, chosen)
        known = jnp.arange(NUM_PAIRS)
        return algorithm1.init(jax.random.key(KEY), target, known, NUM_ANCHORS, chosen), 0, data

    return Program(
        lambda state, index, data: algorithm1.step(state, index, data, chosen),
        arguments,
        f"{n:,} x {n:,} rows, {SOURCE_DIM} and {TARGET_DIM} dimensions",
        bound=streamed_bytes(n, NUM_ANCHORS + SOURCE_DIM + TARGET_DIM),
    )


def bootstrap_step(n: int) -> Program:
    """One step of the bootstrap: a matching by CSLS in both directions, and new maps."""

    def arguments():
        pairs = jnp.arange(NUM_PAIRS)
        data = self_learning.Data(
            *spaces(n, SOURCE_DIM, TARGET_DIM), pairs, pairs, jax.random.key(KEY)
        )
        return self_learning.state_of_pairs(data), 0, data

    return Program(
        lambda state, index, data: self_learning.step(state, index, data, self_learning.Settings()),
        arguments,
        f"{n:,} x {n:,} rows",
        bound=streamed_bytes(n, 4 * TARGET_DIM),
    )


def fit_anchors(n: int) -> Program:
    """Anchors by least squares on matched rows."""

    def arguments():
        source, target = spaces(n, SOURCE_DIM, TARGET_DIM)
        return source, target, source[:NUM_ANCHORS], jnp.arange(n), jnp.ones(n)

    return Program(
        anchors.fit_anchors, arguments, f"{n:,} rows", bound=streamed_bytes(n, 4 * TARGET_DIM)
    )


def match(n: int, iterations: int) -> Program:
    """A streamed entropic matching."""
    return Program(
        lambda x, y: ot.match(x, y, 1e-2, iterations=iterations, rows=True),
        lambda: tuple(spaces(n, SOURCE_DIM, SOURCE_DIM)),
        f"{n:,} x {n:,} rows, {iterations} iterations",
        trips=max(1, iterations - 1),
        bound=streamed_bytes(n, 3 * SOURCE_DIM),
    )


def neighbours(name: str, queries: int, keys: int) -> Program:
    """The ten nearest keys, by `retrieval` or by `csls`."""
    search = {"retrieval": retrieval.top_k, "csls": csls.top_k}[name]

    def arguments():
        source, target = spaces(max(queries, keys), TARGET_DIM, TARGET_DIM)
        return source[:queries], target[:keys]

    return Program(
        lambda queries, keys: search(queries, keys, 10),
        arguments,
        f"{queries:,} queries, {keys:,} keys, {TARGET_DIM} dimensions",
        bound=streamed_bytes(max(queries, keys), 2 * TARGET_DIM),
    )


def dictionary(n: int) -> Program:
    """Best partners by CSLS with their confidence."""
    return Program(
        csls.dictionary,
        lambda: tuple(spaces(n, SOURCE_DIM, SOURCE_DIM)),
        f"{n:,} x {n:,} rows",
        bound=streamed_bytes(n, 3 * SOURCE_DIM),
    )


def streamed_bytes(n: int, columns: int) -> Callable[[int], float]:
    """A bound of O(n d + block n): copies of the rows, and three blocks of 1,024 similarities.

    `columns` are those of the rows that a device may hold beside its arguments.
    """
    return lambda devices: 4 * (n * columns + 3 * 1_024 * n) + (64 << 20)


def sinkhorn(pairs: int, points: int, implicit: bool) -> Program:
    """Transport costs of small clouds and their gradient."""
    distance = cloud.Distance(
        ground="euclidean",
        p=2.0,
        epsilon=1.0,
        iterations=20,
        value="transport_cost",
        implicit_diff=implicit,
    )

    def total(points):
        first = jnp.arange(pairs)
        clouds = cloud.Clouds(points)
        return cloud.pair_distances(clouds, first, first + pairs, distance).sum()

    return Program(
        jax.value_and_grad(total),
        lambda: (jax.random.normal(jax.random.key(KEY), (2 * pairs, points, 2)),),
        f"{pairs:,} pairs of {points} points",
    )


def mnist() -> Program:
    """A step of the siamese network of MNIST."""
    config, count = images_config.get_config(), 60_000
    network = siamese.Network(
        image_shape=(28, 28, 1),
        num_points=config.num_points,
        dimensions=config.dimensions,
        weights=config.weights,
        unit_norm=False,
        pixel_mean=config.pixel_mean,
        pixel_std=config.pixel_std,
    )
    distance = cloud.Distance(**config.distance.to_dict())
    chosen = settings(
        siamese.Training, config, network=network, distance=distance, temperature=None
    )

    def arguments():
        images = integers((count, 28, 28, 1), 256).astype(jnp.uint8)
        classes = siamese.group_by_class(np.arange(count) % 10)
        key = jax.random.key(KEY)
        return siamese.init(chosen, key), 0, siamese.Data(images, classes, key)

    return Program(
        lambda state, index, data: siamese.step(state, index, data, chosen),
        arguments,
        f"{chosen.batch_size} pairs of images",
    )


def graphs() -> Program:
    """Ten updates of the clouds of ten graphs."""
    config = graphs_config.get_config()
    chosen = settings(
        metric_embed.Settings,
        config.tuned.wasserstein,
        geometry="wasserstein",
        shape=(5, 2),
        steps=config.steps.clouds,
    )
    count, nodes = config.num_graphs, config.num_nodes
    first, second = (nodes * np.arange(count)[:, None] + x for x in np.triu_indices(nodes, 1))

    def arguments():
        lengths = 1.0 + integers((first.size,), 5)
        pairs = metric_embed.Data(jnp.asarray(first.ravel()), jnp.asarray(second.ravel()), lengths)
        keys = jax.random.split(jax.random.key(KEY), count)
        return metric_embed.init(chosen, nodes, keys), 0, pairs

    return Program(
        lambda state, index, data: metric_embed.step(state, index, data, chosen),
        arguments,
        f"{first.size:,} pairs of nodes, {metric_embed.UPDATES_PER_STEP} updates",
    )


def words() -> Program:
    """Updates of word clouds."""
    config = words_config.get_config()
    chosen = settings(word_embed.Settings, config, geometry="wasserstein", dimension=2)
    count = config.num_words

    def arguments():
        tokens = integers((6_500_000,), count)
        key = jax.random.key(KEY)
        cumulative = jnp.arange(1, count + 1) / count
        data = word_embed.Data(tokens, cumulative, key)
        return word_embed.init(chosen, count, key), 0, data

    return Program(
        lambda state, index, data: word_embed.step(state, index, data, chosen),
        arguments,
        f"{chosen.updates_per_step} updates of {chosen.batch_size:,} pairs",
    )


def cbow_step() -> Program:
    """A shard of the text, a tenth of an epoch of IMDB."""
    config = embeddings()
    chosen = settings(cbow.Settings, config.cbow)
    count, copies = config.num_words, chosen.copies
    length = 5_700_000 // chosen.shards // copies * copies

    def arguments():
        key = jax.random.key(KEY)
        data = cbow.Data(
            tokens=integers((chosen.shards, length), count),
            keep_prob=jnp.ones(count),
            noise_cdf=jnp.arange(1, count + 1) / count,
            key=key,
        )
        return cbow.init(chosen, count, key), 0, data

    batches = length / copies / chosen.segments / chosen.segment_length
    return Program(
        lambda state, index, data: cbow.step(state, index, data, chosen),
        arguments,
        f"{length:,} words, {copies} copies of the tables",
        # The loop over exchanges contains one over the batches of an exchange.
        trips=batches**0.5,
    )


def glove_step() -> Program:
    """Passes through the counts of IMDB, a fifth of all pairs of words."""
    config = embeddings()
    chosen = settings(glove.Settings, config.glove)
    count = config.num_words

    def arguments():
        parts = num_parts(count)
        size = round(0.22 * count**2 / chosen.blocks / parts)
        shape = parts, chosen.blocks, size
        data = glove.Data(
            word=integers(shape, -(-count // chosen.blocks)),
            context=integers(shape, count // parts, 1),
            log_count=jax.random.normal(jax.random.key(KEY), shape),
            weight=jax.random.uniform(jax.random.key(KEY), shape),
            key=jax.random.key(KEY),
        )
        return glove.init(chosen, count, jax.random.key(KEY)), 0, data

    return Program(
        lambda state, index, data: glove.step(state, index, data, chosen),
        arguments,
        f"{count:,} words, {chosen.epochs_per_step * chosen.blocks} updates",
    )


def lstm_step() -> Program:
    """Updates of the sentiment classifier."""
    config = embeddings()
    chosen = settings(lstm.Settings, config.lstm)

    def arguments():
        key = jax.random.key(KEY)
        data = lstm.Data(
            integers((config.num_texts, chosen.max_length), config.num_words),
            integers((config.num_texts,), 2),
            key,
        )
        return lstm.init(chosen, rows(config.num_words, config.cbow.dim), key), 0, data

    return Program(
        lambda state, index, data: lstm.step(state, index, data, chosen),
        arguments,
        f"{chosen.updates_per_step} updates of {chosen.batch_size} texts",
    )


def lpl_step() -> Program:
    """Updates of a linear map by the locality preserving loss."""
    chosen = settings(
        methods.GradientDescent, lpl_config.get_config().lpa_mse, apply=training.linear
    )
    count = 3_000

    def arguments():
        source, target = spaces(count, SOURCE_DIM, SOURCE_DIM)
        near, weights, key = source[:, None], jnp.ones((count, 1)), jax.random.key(KEY)
        data = methods.Data(source, target, near, weights, jnp.asarray(count), key)
        matrix = jax.nn.initializers.orthogonal()(key, (SOURCE_DIM, SOURCE_DIM))
        return training.init_state(matrix, chosen), 0, data

    return Program(
        lambda state, index, data: training.step(state, index, data, chosen),
        arguments,
        f"{chosen.updates // training.STEPS} updates of {chosen.batch} pairs",
    )


def stitching_head() -> Program:
    """An epoch of the classifier on relative vectors."""
    config, count = stitching_config.get_config(), 4_000
    chosen = head.Settings(
        form="published",
        width=NUM_ANCHORS,
        num_classes=2,
        training=settings(head.Training, config.head),
    )

    def arguments():
        data = head.Data(rows(count, NUM_ANCHORS), integers((count,), 2), jax.random.key(KEY))
        return head.init(chosen, 0), 0, data

    return Program(
        lambda state, index, data: head.epoch(state, index, data, chosen),
        arguments,
        f"{count:,} texts in batches of {chosen.training.batch_size}",
    )


def vit_step() -> Program:
    """A step of the vision transformer `vit_wide`."""
    config, count = vision_config.get_config(), 60_000
    encoder = config.encoders.vit_wide
    shape = vit.Shape(
        image=(28, 28, 1),
        patch=config.patch,
        width=encoder.width,
        depth=encoder.depth,
        heads=encoder.heads,
        classes=10,
    )
    chosen = vit.Settings(shape=shape, training=settings(vit.Training, config.training))

    def arguments():
        images = integers((count, 28, 28, 1), 256).astype(jnp.uint8)
        data = vit.Data(images, integers((count,), 10), jax.random.key(KEY))
        return vit.init(chosen, 0), 0, data

    return Program(
        lambda state, index, data: vit.step(state, index, data, chosen),
        arguments,
        f"{chosen.training.batch} images",
    )


def lle(n: int, count: int) -> Program:
    """The weights of locally linear embedding of some rows from their neighbours among all."""
    return Program(
        loss.lle_weights,
        lambda: (rows(n, SOURCE_DIM), jnp.arange(count), integers((count, 10), n)),
        f"{count:,} of {n:,} rows, ten neighbours",
        bound=streamed_bytes(n, SOURCE_DIM),
    )


PROGRAMS: dict[str, Callable[[], Program]] = {
    "algorithm1_20000": partial(algorithm1_step, 20_000),
    "algorithm1_200000": partial(algorithm1_step, 200_000),
    "bootstrap_20000": partial(bootstrap_step, 20_000),
    "bootstrap_200000": partial(bootstrap_step, 200_000),
    "fit_anchors_20000": partial(fit_anchors, 20_000),
    "match_20000": partial(match, 20_000, 1),
    "match_200000": partial(match, 200_000, 20),
    "top_k_1000000": partial(neighbours, "retrieval", 16_384, 1_000_000),
    "csls_200000": partial(neighbours, "csls", 200_000, 200_000),
    "csls_1000000": partial(neighbours, "csls", 1_000_000, 1_000_000),
    "csls_dictionary_200000": partial(dictionary, 200_000),
    "lle_200000": partial(lle, 200_000, 20_000),
    "sinkhorn": partial(sinkhorn, 1_024, 16, False),
    "sinkhorn_implicit": partial(sinkhorn, 1_024, 16, True),
    "mnist": mnist,
    "graphs": graphs,
    "words": words,
    "cbow": cbow_step,
    "glove": glove_step,
    "lstm": lstm_step,
    "lpl": lpl_step,
    "stitching_head": stitching_head,
    "vit": vit_step,
}
QUICK: dict[str, Callable[[], Program]] = {  # small enough for a test on a CPU
    "algorithm1_quick": partial(algorithm1_step, 1_000),
    "bootstrap_quick": partial(bootstrap_step, 1_000),
    "top_k_quick": partial(neighbours, "retrieval", 500, 2_000),
    "sinkhorn_quick": partial(sinkhorn, 16, 4, False),
}
