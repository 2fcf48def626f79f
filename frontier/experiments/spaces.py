"""What two spaces with known items have in common, before any method has run."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict

from common.errors import check_count
from common.linear import least_squares, preprocess, procrustes, unit
from common.metrics import correspondence, linear_cka, mrr, mutual_neighbours, precision_at_k
from common.retrieval import top_k
from common.run import records, results, tasks
from common.run.results import Row
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs
from frontier.reports import spaces as report

CHANCE_ORDERS = 20  # random orders of the rows, for the similarity by chance
FITS = {"orthogonal": procrustes, "least_squares": least_squares}


class Problem(NamedTuple):
    """Two spaces with known items, row i of both being the same; `order` is random."""

    source: Float[Array, "n d"]
    target: Float[Array, "n e"]
    order: Int[np.ndarray, " n"]


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """CKA, linear maps and true anchors of each pair: a table, and the figure cka.png."""
    sizes = {"num_anchors": config.num_anchors, "k": config.k}
    measure = partial(measure_pair, **sizes, first_seed=config.random_seeds[0])
    todo = tasks.grid(cases_of(config, cache), ["truth"], config.random_seeds)
    rows = results.averaged(tasks.run(todo, measure, work).rows)
    return records.finish(work, rows, report)


def cases_of(config: ConfigDict, cache: Path) -> Iterator[Case]:
    """The pairs of config.pairs, numbered."""
    for number, pair in enumerate(config.pairs, start=1):
        names = space_pairs.names(pair)
        data = paired_spaces.load(*names, num_words=None, cache=cache, max_rows=config.max_rows)
        check_count("num_words", config.num_words, len(data.names), f"items of {pair}", least=2)
        chosen = slice(config.num_words)
        source, target = (preprocess(x[chosen]) for x in (data.source, data.target))
        labels = {"pair": number, "source_dim": source.shape[1], "shared": len(data.names)}
        fields = {
            "experiment": config.experiment,
            **space_pairs.fields(names),
            "dim": target.shape[1],
            "num_items": len(source),
            "labels": labels,
        }
        yield Case(space_pairs.file_name(*names), fields, partial(_problem, source, target))


def _problem(source: Array, target: Array, random_seed: int) -> Problem:
    order = np.random.default_rng(random_seed).permutation(len(source))
    return Problem(source, target, order)


def measure_pair(
    task: Task, *, num_anchors: int, k: int, first_seed: int
) -> tuple[list[Row], dict[str, Any]]:
    """Rows of the metrics in `report.COLUMNS`, in lists of k items.

    The order of the `Problem` draws the true anchors, n at most, and the halves. The similarities
    are measured with the first random seed alone.
    """
    source, target, order = task.case.problem(task.random_seed)
    rows = []
    if task.random_seed == first_seed:  # nothing else in it is random
        measures = _similarities(source, target, k, jax.random.key(task.random_seed))
        rows += [task.row(metric, value) for metric, value in measures.items()]
    half, anchors = len(source) // 2, order[:num_anchors]
    for method, fit in FITS.items():
        scores = _held_out(source, target, order[:half], order[half:], fit, k)
        rows += [task.row(metric, value, method=method) for metric, value in scores.items()]
    relative = {
        "source": unit(source @ source[anchors].T),
        "target": unit(target @ target[anchors].T),
    }
    scores = correspondence(relative, k)["source", "target"]
    rows += [task.row(metric, scores[metric], method="gt") for metric in ("jaccard", "mrr")]
    return rows, {}


@partial(jax.jit, static_argnames="k")
def _similarities(
    source: Float[Array, "n d"], target: Float[Array, "n e"], k: int, key: Array
) -> dict[str, Float[Array, ""]]:
    """Linear CKA and mutual nearest neighbours, each as it is and calibrated by random orders."""
    # Of k + 1 neighbours the first is the row itself, which is no neighbour.
    lists = [top_k(x, x, k + 1).index[:, 1:] for x in (source, target)]

    def in_order(order: Int[Array, " n"]) -> tuple[Array, Array]:
        renamed = jnp.argsort(order)[lists[1][order]]  # neighbours of the rows in this order
        return linear_cka(source, target[order]), mutual_neighbours(lists[0], renamed)

    def shuffled(key: Array) -> tuple[Array, Array]:
        return in_order(jax.random.permutation(key, len(target)))

    values = {}
    true = in_order(jnp.arange(len(target)))
    chance = jax.lax.map(shuffled, jax.random.split(key, CHANCE_ORDERS))
    names = ("linear_cka", "mutual_neighbours")
    for name, similarity, by_chance in zip(names, true, chance, strict=True):
        values |= {name: similarity, f"calibrated_{name}": calibrated(similarity, by_chance)}
    return values


def calibrated(
    similarity: Float[Array, ""], by_chance: Float[Array, " r"], level: float = 0.05
) -> Float[Array, ""]:
    """max(0, (s - t) / (1 - t)), a similarity of which chance is taken off (Gröger et al. 2026).

    t is the ceil((1 - level) (r + 1))-th smallest of s and r similarities `by_chance`,
    with the rows of one space in random orders; `level` of unrelated spaces are above 0.
    """
    together = jnp.sort(jnp.append(by_chance, similarity))
    threshold = together[math.ceil((1 - level) * len(together)) - 1]
    return jnp.maximum(0, (similarity - threshold) / (1 - threshold))


def _held_out(
    source: Float[Array, "n d"],
    target: Float[Array, "n e"],
    fitted: Int[np.ndarray, " a"],
    tested: Int[np.ndarray, " b"],
    fit,
    k: int,
) -> dict[str, Array]:
    """P@1 and MRR of `tested` rows under the map that `fit` finds on `fitted` rows."""
    mapped_source = unit(source[tested] @ fit(source[fitted], target[fitted]))
    _, nearest = top_k(mapped_source, target, k)
    truth = jnp.asarray(tested)
    return {"p_at_1": precision_at_k(nearest, truth, 1), "mrr": mrr(nearest, truth)}
