"""Self-learning (ours): the search of the tool, and anchors fitted to the pairs that it finds."""

import jax

from anchor_opt.methods.anchors import fit_anchors
from anchor_opt.problem import Problem, Result, Run
from common import csls
from isthmus.search import Report, Settings, search, self_learning
from isthmus.search.refinement import Fit
from isthmus.search.self_learning import Data


def find(problem: Problem, run: Run) -> tuple[Fit, Report]:
    """The search between the spaces of a problem, which does not read its truth."""
    values = run.settings
    settings = Settings(steps=values.bootstrap, start=values.start, goat=values.goat)
    key = jax.random.key(run.random_seed)
    data = Data(problem.source, problem.target, *problem.pairs, key)
    return search(data, problem.ranks, settings, run.train)


def run(problem: Problem, run: Run) -> Result:
    """Anchors that are freed and fitted one by one to the pairs that the search finds.

    The notes are those of `search.Report`, and `rejected_pairs`, see
    `self_learning.rejected_pairs`.
    """
    (fit, report), spaces = find(problem, run), (problem.source, problem.target)
    anchors = fit_anchors(*spaces, problem.source_anchors, fit.to_target, fit.is_pair)
    result = Result(anchors, fit.maps)
    neighbours = run.settings.bootstrap.neighbours
    matches = csls.matches(*result.coordinates(*spaces), neighbours=neighbours)
    rejected = self_learning.rejected_pairs(matches, *problem.pairs)
    return result._replace(notes=report._asdict() | {"rejected_pairs": rejected})
