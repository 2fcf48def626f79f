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

from anchor_opt import head
from anchor_opt.methods import algorithm1, anchors
from common import cbow, csls, ot, retrieval
from common.linear import unit
from common.parallel import num_parts
from common.run.settings import settings
from configs.anchor_opt import retrieval as retrieval_config
from configs.anchor_opt import stitching as stitching_config
from configs.embed_match.trained import embeddings
from configs.lpl import word_alignment as lpl_config
from configs.wasserstein_embed import graphs as graphs_config
from configs.wasserstein_embed import images as images_config
from configs.wasserstein_embed import words as words_config
from embed_match import glove, lstm
from isthmus.search import self_learning
from lpl import loss, methods, training
from wasserstein_embed import cloud, metric_embed, siamese, word_embed

SOURCE_DIM, TARGET_DIM = 300, 384  # of Word2Vec and MiniLM
NUM_ANCHORS, NUM_PAIRS = 300, 15
IMAGE, NUM_IMAGES = (28, 28, 1), 60_000  # of MNIST


class Program(NamedTuple):
    """A function under jit."""

    function: Callable[..., Any]
    arguments: Callable[[], tuple]  # makes them; traced or run under jit
    sizes: str  # of the problem, for the table
    trips: float = 1.0  # iterations of those loops whose number is only known when they run
    split: bool = False  # whether each device has a part of the arguments, for which one is small


def random_key() -> Array:
    """The key of all random data."""
    return jax.random.key(0)


def spaces(n: int, *dims: int) -> list[Float[Array, "n d"]]:
    """Unit rows that correspond: random maps of the same rows, with noise."""
    hidden = jax.random.normal(random_key(), (n, 64))
    drawn = []
    for seed, dim in enumerate(dims):
        map_key, noise_key = jax.random.split(jax.random.key(seed + 1))
        space = hidden @ jax.random.normal(map_key, (64, dim)) / 8
        drawn.append(unit(space + 0.1 * jax.random.normal(noise_key, space.shape)))
    return drawn


def integers(shape: tuple[int, ...], limit: int, seed: int = 0) -> Array:
    """Random integers below a limit."""
    return jax.random.randint(jax.random.key(seed), shape, 0, limit)


def algorithm1_step(n: int) -> Program:
    """One step of Algorithm 1: a matching of all rows and an update of Adam."""
    chosen = settings(algorithm1.Step, retrieval_config.get_config().algorithm1)

    def arguments():
        source, target = spaces(n, SOURCE_DIM, TARGET_DIM)
        data = algorithm1.prepare(source, source[:NUM_ANCHORS], target)
        known = jnp.arange(NUM_PAIRS)
        return algorithm1.init(random_key(), target, known, NUM_ANCHORS, 1.0), 0, data

    sizes = f"{n:,} x {n:,} rows, {SOURCE_DIM} and {TARGET_DIM} dimensions"
    return Program(partial(algorithm1.sphere_step, settings=chosen), arguments, sizes)


def bootstrap_step(n: int) -> Program:
    """One step of the bootstrap: a matching by CSLS in both directions, and new maps."""

    def arguments():
        pairs = jnp.arange(NUM_PAIRS)
        data = self_learning.Data(*spaces(n, SOURCE_DIM, TARGET_DIM), pairs, pairs, random_key())
        return self_learning.state_of_pairs(data), 0, data

    step = partial(self_learning.step, settings=self_learning.Settings())
    return Program(step, arguments, f"{n:,} x {n:,} rows")


def fit_anchors(n: int) -> Program:
    """Anchors by least squares on matched rows."""

    def arguments():
        source, target = spaces(n, SOURCE_DIM, TARGET_DIM)
        return source, target, source[:NUM_ANCHORS], jnp.arange(n), jnp.ones(n)

    return Program(anchors.fit_anchors, arguments, f"{n:,} rows")


def match(n: int, m: int, iterations: int) -> Program:
    """A streamed entropic matching of n rows with m."""

    def arguments():
        source, target = spaces(max(n, m), SOURCE_DIM, SOURCE_DIM)
        return source[:n], target[:m]

    solve = partial(ot.match, epsilon=1e-2, iterations=iterations, rows=True)
    sizes = f"{n:,} x {m:,} rows, {iterations} iterations"
    return Program(solve, arguments, sizes, trips=max(1, iterations - 1))


def neighbours(search: Callable[..., Any], queries: int, keys: int) -> Program:
    """The ten nearest keys, by `retrieval.top_k` or by `csls.top_k`."""

    def arguments():
        source, target = spaces(max(queries, keys), TARGET_DIM, TARGET_DIM)
        return source[:queries], target[:keys]

    sizes = f"{queries:,} queries, {keys:,} keys, {TARGET_DIM} dimensions"
    return Program(partial(search, k=10), arguments, sizes)


def partners(search: Callable[..., Any], n: int, split: bool = False) -> Program:
    """The best partner of every row, by `csls.dictionary` or `csls.matches`."""
    arguments = partial(spaces, n, SOURCE_DIM, SOURCE_DIM)
    return Program(search, arguments, f"{n:,} x {n:,} rows", split=split)


def lle(n: int, count: int) -> Program:
    """The weights of locally linear embedding of some rows from their neighbours among all."""

    def arguments():
        return spaces(n, SOURCE_DIM)[0], jnp.arange(count), integers((count, 10), n)

    return Program(loss.lle_weights, arguments, f"{count:,} of {n:,} rows, ten neighbours")


def sinkhorn(pairs: int, points: int, implicit: bool) -> Program:
    """Transport costs of small clouds and their gradient."""
    solver = {"epsilon": 1.0, "iterations": 20, "implicit_diff": implicit}
    distance = cloud.Distance(p=2.0, value="transport_cost", **solver)

    def total(points):
        first = jnp.arange(pairs)
        return cloud.pair_distances(cloud.Clouds(points), first, first + pairs, distance).sum()

    def arguments():
        return (jax.random.normal(random_key(), (2 * pairs, points, 2)),)

    return Program(jax.value_and_grad(total), arguments, f"{pairs:,} pairs of {points} points")


def mnist() -> Program:
    """A step of the siamese network of MNIST."""
    config = images_config.get_config()
    network = settings(siamese.Network, config, image_shape=IMAGE, unit_norm=False)
    chosen = settings(siamese.Training, config, network=network, temperature=None)

    def arguments():
        classes = siamese.group_by_class(np.arange(NUM_IMAGES) % 10)
        images = integers((NUM_IMAGES, *IMAGE), 256).astype(jnp.uint8)
        data = siamese.Data(images, classes, random_key())
        return siamese.init(chosen, random_key()), 0, data

    sizes = f"{chosen.batch_size} pairs of images"
    return Program(partial(siamese.step, settings=chosen), arguments, sizes)


def graphs(count: int, nodes: int) -> Program:
    """Ten updates of the clouds of some graphs."""
    config = graphs_config.get_config()
    about = {"geometry": "wasserstein", "shape": (5, 2), "steps": config.steps.clouds}
    chosen = settings(metric_embed.Settings, config.tuned.wasserstein, **about)
    first, second = (nodes * np.arange(count)[:, None] + x for x in np.triu_indices(nodes, 1))

    def arguments():
        lengths = 1.0 + integers((first.size,), 5)
        pairs = metric_embed.Data(jnp.asarray(first.ravel()), jnp.asarray(second.ravel()), lengths)
        keys = jax.random.split(random_key(), count)
        return metric_embed.init(chosen, nodes, keys), 0, pairs

    sizes = f"{first.size:,} pairs of nodes, {metric_embed.UPDATES_PER_STEP} updates"
    return Program(partial(metric_embed.step, settings=chosen), arguments, sizes)


def words() -> Program:
    """Updates of word clouds."""
    config = words_config.get_config()
    chosen = settings(word_embed.Settings, config, geometry="wasserstein", dimension=2)
    count = config.num_words

    def arguments():
        frequencies = jnp.arange(1, count + 1) / count
        data = word_embed.Data(integers((6_500_000,), count), frequencies, random_key())
        return word_embed.init(chosen, count, random_key()), 0, data

    sizes = f"{chosen.updates_per_step} updates of {chosen.batch_size:,} pairs"
    return Program(partial(word_embed.step, settings=chosen), arguments, sizes)


def cbow_step() -> Program:
    """A shard of the text, a tenth of an epoch of IMDB."""
    config = embeddings()
    chosen = settings(cbow.Settings, config.cbow)
    count, copies = config.num_words, chosen.copies
    length = 5_700_000 // chosen.shards // copies * copies

    def arguments():
        tokens, noise = integers((chosen.shards, length), count), jnp.arange(1, count + 1) / count
        data = cbow.Data(tokens, keep_prob=jnp.ones(count), noise_cdf=noise, key=random_key())
        return cbow.init(chosen, count, random_key()), 0, data

    # The loop over exchanges contains one over the batches of an exchange.
    batches = length / copies / chosen.segments / chosen.segment_length
    sizes = f"{length:,} words, {copies} copies of the tables"
    return Program(partial(cbow.step, settings=chosen), arguments, sizes, trips=batches**0.5)


def glove_step() -> Program:
    """Passes through the counts of IMDB, a fifth of all pairs of words."""
    config = embeddings()
    chosen = settings(glove.Settings, config.glove)
    count = config.num_words

    def arguments():
        parts = num_parts(count)
        shape = parts, chosen.blocks, round(0.22 * count**2 / chosen.blocks / parts)
        data = glove.Data(
            word=integers(shape, -(-count // chosen.blocks)),
            context=integers(shape, count // parts, 1),
            log_count=jax.random.normal(random_key(), shape),
            weight=jax.random.uniform(random_key(), shape),
            key=random_key(),
        )
        return glove.init(chosen, count, random_key()), 0, data

    sizes = f"{count:,} words, {chosen.epochs_per_step * chosen.blocks} updates"
    return Program(partial(glove.step, settings=chosen), arguments, sizes)


def lstm_step() -> Program:
    """Updates of the sentiment classifier."""
    config = embeddings()
    chosen = settings(lstm.Settings, config.lstm)

    def arguments():
        texts = integers((config.num_texts, chosen.max_length), config.num_words)
        data = lstm.Data(texts, integers((config.num_texts,), 2), random_key())
        table = spaces(config.num_words, config.cbow.dim)[0]
        return lstm.init(chosen, table, random_key()), 0, data

    sizes = f"{chosen.updates_per_step} updates of {chosen.batch_size} texts"
    return Program(partial(lstm.step, settings=chosen), arguments, sizes)


def lpl_step() -> Program:
    """Updates of a linear map by the locality preserving loss."""
    config, count = lpl_config.get_config(), 3_000
    chosen = settings(methods.GradientDescent, config.lpa_mse, apply=training.linear)

    def arguments():
        source, target = spaces(count, SOURCE_DIM, SOURCE_DIM)
        near, weights = source[:, None], jnp.ones((count, 1))
        data = methods.Data(source, target, near, weights, jnp.asarray(count), random_key())
        matrix = jax.nn.initializers.orthogonal()(random_key(), (SOURCE_DIM, SOURCE_DIM))
        return training.init_state(matrix, chosen), 0, data

    sizes = f"{chosen.updates // training.STEPS} updates of {chosen.batch} pairs"
    return Program(partial(training.step, settings=chosen), arguments, sizes)


def stitching_head() -> Program:
    """An epoch of the classifier on relative vectors."""
    count, trained = 4_000, settings(head.Training, stitching_config.get_config().head)
    chosen = head.Settings(form="published", width=NUM_ANCHORS, num_classes=2, training=trained)

    def arguments():
        data = head.Data(spaces(count, NUM_ANCHORS)[0], integers((count,), 2), random_key())
        return head.init(chosen, 0), 0, data

    sizes = f"{count:,} texts in batches of {trained.batch_size}"
    return Program(partial(head.epoch, settings=chosen), arguments, sizes)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "algorithm1_20000": partial(algorithm1_step, 20_000),
    "algorithm1_200000": partial(algorithm1_step, 200_000),
    "bootstrap_20000": partial(bootstrap_step, 20_000),
    "bootstrap_200000": partial(bootstrap_step, 200_000),
    "fit_anchors_20000": partial(fit_anchors, 20_000),
    "match_20000": partial(match, 20_000, 20_000, 1),
    "match_200000": partial(match, 200_000, 200_000, 20),
    "top_k_1000000": partial(neighbours, retrieval.top_k, 16_384, 1_000_000),
    "csls_200000": partial(neighbours, csls.top_k, 200_000, 200_000),
    "csls_1000000": partial(neighbours, csls.top_k, 1_000_000, 1_000_000),
    "csls_dictionary_200000": partial(partners, csls.dictionary, 200_000),
    "match_10000000": lambda: match(10_000_000, 10_000_000, 1)._replace(split=True),
    "csls_10000000": partial(partners, csls.matches, 10_000_000, split=True),
    "lle_200000": partial(lle, 200_000, 20_000),
    "sinkhorn": partial(sinkhorn, 1_024, 16, False),
    "sinkhorn_implicit": partial(sinkhorn, 1_024, 16, True),
    "mnist": mnist,
    "graphs": partial(graphs, 10, 64),
    "words": words,
    "cbow": cbow_step,
    "glove": glove_step,
    "lstm": lstm_step,
    "lpl": lpl_step,
    "stitching_head": stitching_head,
}
