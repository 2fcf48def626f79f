"""Measurements of what a method returns. They read the true pairing; the methods do not."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from anchor_opt.problem import Problem, Result
from anchor_opt.relative import unit_relative
from common import csls
from common.linear import procrustes
from common.metrics import mrr
from common.retrieval import top_k

REPORTS = ("false_success", "false_failure")  # metrics of what searches report
SUCCESS = 0.5  # P@1 of a successful search, divided by that of the map fitted to all true pairs


class Precision(NamedTuple):
    """P@1 by CSLS in a method's common coordinates, of the items that both spaces have."""

    to_target: float
    to_source: float


def relative_mrr(problem: Problem, anchors: Float[Array, "k d_target"], k: int) -> float:
    """MRR in lists of k of the shared items, sought among all target rows by relative vectors.

    The anchors of the target are parallel to the source's first ones.
    """
    source = unit_relative(problem.source, problem.source_anchors[: len(anchors)])
    return mrr_of(source, unit_relative(problem.target, anchors), problem.known_truth, k)


def mrr_of(
    source: Float[Array, "n r"], target: Float[Array, "m r"], truth: Int[np.ndarray, " n"], k: int
) -> float:
    """MRR of unit rows whose partner is known, as in `Problem`; one that is in no list counts 0."""
    shared = np.flatnonzero(truth >= 0)
    nearest = top_k(source[shared], target, k).index
    return float(mrr(nearest, jnp.asarray(truth[shared])))


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


def search_scores(
    problem: Problem, notes: Mapping[str, Any], reached: float, k: int
) -> dict[str, float]:
    """What a search says about itself in its notes, beside what is true.

    Returns:
      `relative_p_at_1`: P@1 of the search's own map, `reached`, divided by P@1 of the orthogonal
      map of all true pairs; `gain` of the search; `false_success` and `false_failure`, 0 or 1.
    """
    rows, partners = problem.shared
    best = procrustes(problem.source[rows], problem.target[partners])
    reference = precision_of_maps(problem, Result.of_map(problem, best), k).to_target
    return {
        "relative_p_at_1": reached / max(reference, 1 / len(rows)),
        "gain": notes["corrected_agreement"],
        **false_reports(reached >= SUCCESS * reference, notes["failed"]),
    }


def false_reports(succeeded: bool | np.bool, failed: bool) -> dict[str, float]:
    """Whether a search that says whether it has `failed` is wrong in one way or the other."""
    reports = not succeeded and not failed, succeeded and failed
    return dict(zip(REPORTS, map(float, reports), strict=True))
