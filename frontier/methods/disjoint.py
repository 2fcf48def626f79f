"""The search between two samples that have no item in common, as a method of the experiments."""

from anchor_opt.problem import Problem, Result, Run
from common.linear import unit
from isthmus.search import disjoint


def run(problem: Problem, run: Run) -> Result:
    """Anchors are mapped by the map of `isthmus.search.disjoint`; known pairs take part.

    The notes are `agreement` and `failed`, see `disjoint.search`.
    """
    spaces, values = (problem.source, problem.target), run.settings.disjoint
    maps, agreement, failed = disjoint.search(
        *spaces, problem.pairs, values, run.train, run.random_seed
    )
    anchors = unit(problem.source_anchors @ maps.source @ maps.target.T)
    return Result(anchors, maps, {"agreement": agreement, "failed": failed})
