"""The search between two samples that have no item in common, as a method of the experiments."""

import jax

from anchor_opt.problem import Problem, Result, Run
from common.linear import unit
from isthmus.search import disjoint
from isthmus.search.self_learning import Data


def run(problem: Problem, run: Run) -> Result:
    """Anchors are mapped by the map of `isthmus.search.disjoint`; known pairs take part.

    The notes are `agreement` and `failed`, see `disjoint.search`.
    """
    key = jax.random.key(run.random_seed)
    data = Data(problem.source, problem.target, *problem.pairs, key)
    maps, agreement, failed = disjoint.search(data, run.settings.disjoint, run.train)
    anchors = unit(problem.source_anchors @ maps.source @ maps.target.T)
    return Result(anchors, maps, {"agreement": agreement, "failed": failed})
