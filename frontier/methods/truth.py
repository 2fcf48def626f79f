"""The reference of methods whose maps are orthogonal."""

from anchor_opt.problem import Problem, Result, Run
from common.linear import procrustes


def orthogonal(problem: Problem, run: Run | None = None) -> Result:
    """The orthogonal map fitted to the true pairs."""
    rows, partners = problem.shared
    return Result.of_map(problem, procrustes(problem.source[rows], problem.target[partners]))
