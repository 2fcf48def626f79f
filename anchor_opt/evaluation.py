"""Measurements of what a method returns. They read the true pairing; the methods do not."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from anchor_opt.problem import Problem, Result
from anchor_opt.relative import unit_relative
from common import csls
from common.linear import apply_map, procrustes
from common.metrics import mrr
from common.retrieval import top_k
from common.run.results import Row
from common.run.tasks import Task

REPORTS = ("false_success", "false_failure")  # metrics of what searches report
SUCCESS = 0.5  # P@1 of a successful search, divided by that of the map fitted to all true pairs


class Precision(NamedTuple):
    """P@1 by CSLS in a method's common coordinates, of the items that both spaces have."""

    to_target: float
    to_source: float


def relative_mrr(problem: Problem, anchors: Float[Array, "k d_target"], k: int) -> float:
    """MRR of the shared items, whose partners are sought among all target rows by relative vectors.

    Args:
      problem: with the truth.
      anchors: of the target, parallel to the source's first anchors.
      k: length of the lists; an item that is in none counts 0.
    """
    shared = np.flatnonzero(problem.known_truth >= 0)
    source = unit_relative(problem.source[shared], problem.source_anchors[: len(anchors)])
    nearest = top_k(source, unit_relative(problem.target, anchors), k)[1]
    return float(mrr(nearest, jnp.asarray(problem.known_truth[shared])))


def precision_of_maps(problem: Problem, result: Result, k: int) -> Precision:
    """P@1 of a method's own maps, with `k` neighbours of CSLS."""
    return precision(*result.coordinates(problem.source, problem.target), problem.known_truth, k)


def precision(
    source: Float[Array, "n r"], target: Float[Array, "m r"], truth: Int[np.ndarray, " n"], k: int
) -> Precision:
    """P@1 in common coordinates: unit rows of both spaces, and the truth as in `Problem`."""
    matches = jax.device_get(csls.matches(source, target, neighbours=k))
    shared = np.flatnonzero(truth >= 0)
    partners = truth[shared]
    return Precision(
        to_target=float(np.mean(matches.to_target[shared] == partners)),
        to_source=float(np.mean(matches.to_source[partners] == shared)),
    )


def search_rows(
    task: Task, problem: Problem, notes: Mapping[str, Any], reached: float, k: int, **fields: Any
) -> list[Row]:
    """What a search of the bootstrap says about itself beside what is true.

    Args:
      task: that made the search.
      problem: with the truth.
      notes: of the search.
      reached: P@1 of the search's own map (CSLS, shared items).
      k: number of neighbours of CSLS.
      **fields: of the rows.

    Returns:
      Rows of `relative_p_at_1`: `reached` divided by P@1 of the orthogonal map of all true pairs;
      `gain` of the search; `false_success` and `false_failure`, each 0 or 1.
    """
    shared = np.flatnonzero(problem.known_truth >= 0)
    partners = problem.known_truth[shared]
    best = _truly_mapped_matches(problem.source, problem.target, shared, partners, k)
    reference = np.mean(np.asarray(best)[shared] == partners)
    scores = {
        "relative_p_at_1": reached / max(reference, 1 / len(shared)),
        "gain": notes["corrected_agreement"],
        **false_reports(reached >= SUCCESS * reference, notes["failed"]),
    }
    labels = {"representation": "search"}
    return [task.row(metric, value, labels=labels, **fields) for metric, value in scores.items()]


def false_reports(succeeded: bool | np.bool, failed: bool) -> dict[str, bool | np.bool]:
    """Whether a search that says whether it has `failed` is wrong in one way or the other."""
    return dict(zip(REPORTS, (not succeeded and not failed, succeeded and failed), strict=True))


@partial(jax.jit, static_argnames="k")
def _truly_mapped_matches(source, target, shared, partners, k: int) -> Int[Array, " n"]:
    """The target row of each source row by the orthogonal map fitted to the true pairs."""
    rotation = procrustes(source[shared], target[partners])
    return csls.matches(apply_map(source, rotation), target, neighbours=k).to_target
