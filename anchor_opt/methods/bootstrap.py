"""The bootstrap: from few known pairs, or none, to a correspondence and to parallel anchors.

Self-learning on the most frequent rows, from one initialization after the other until one succeeds
(self_learning.py, initialization.py, agreement.py); refinement on all rows (refinement.py); and at
the end anchors that are freed and fitted one by one to the matched pairs (anchors.py). This module
runs these steps and logs them.
"""

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from jaxtyping import ArrayLike, Bool, Int

from anchor_opt.methods import initialization, refinement, self_learning
from anchor_opt.methods.agreement import (
    chance_agreement,
    corrected_for_chance,
    success_probability,
)
from anchor_opt.methods.anchors import fit_anchors
from anchor_opt.methods.self_learning import Data, State
from anchor_opt.problem import Problem, Result, Run
from common import csls
from common.linear import Maps

# Of rows without ranks the partner of each may be anywhere, and so many are taken at first.
UNRANKED_ROWS = 20_000
UNRANKED_INITIALIZATION_ROWS = 5_000  # the similarities [n, n] of so many rows fit into memory
MIN_WRONG_PAIRS = 15  # of the chance baseline


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(refinement.Settings, initialization.GroupSettings):
    """Values of the bootstrap; "measured" values were chosen on development pairs."""

    # Self-learning, on the most frequent rows; all rows if they have no ranks
    search_rows: int = 4_000
    search_steps: int = 100  # at most, from each initialization
    # Chance-corrected agreement, see agreement.py
    sure_gain: float = 0.5  # from which no further initialization is tried; measured
    min_gain: float = 0.3  # smallest of a success, see `converge`; measured


class Report(NamedTuple):
    """What the bootstrap says about its own result; it does not read the true pairing for it.

    Attributes:
      agreement: fraction of matches that maps fitted to other matches find again.
      chance_agreement: the highest of self-learning from wrong pairs, see agreement.py.
      corrected_agreement: chance-corrected agreement, see agreement.py.
      probability: that the map finds at least half of the items that a map fitted to all true pairs
        would find.
      failed: whether that is less than one half.
      initialization: name of the best one.
    """

    agreement: float
    chance_agreement: float
    corrected_agreement: float
    probability: float
    failed: bool
    initialization: str


class Converged(NamedTuple):
    """The result of the bootstrap before anchors are fitted.

    Attributes:
      maps: of the problem's rows into the common coordinates, up to the length of rows.
      to_target: the target row that is matched with each source row.
      is_pair: whether they are one of the pairs to which the maps are fitted.
      report: whether the maps are right.
    """

    maps: Maps
    to_target: Int[ArrayLike, " n"]
    is_pair: Bool[ArrayLike, " n"]
    report: Report


def run(problem: Problem, run: Run) -> Result:
    """The bootstrap: `converge`, then anchors fitted to the matched pairs.

    The notes are those of `Report`, and `rejected_pairs`, see `self_learning.rejected_pairs`.
    """
    converged = converge(problem, run)
    spaces = problem.source, problem.target
    anchors = fit_anchors(*spaces, problem.source_anchors, converged.to_target, converged.is_pair)
    result = Result(anchors, converged.maps)
    neighbours = run.settings.bootstrap.neighbours
    matches = csls.matches(*result.coordinates(*spaces), neighbours=neighbours)
    rejected = self_learning.rejected_pairs(matches, *problem.pairs)
    return result._replace(notes=converged.report._asdict() | {"rejected_pairs": rejected})


def converge(problem: Problem, run: Run) -> Converged:
    """Self-learning, refinement and fit; the truth may be unknown and the spaces of any size.

    Whether the result is right is decided without labels, by the chance-corrected agreement.
    Self-learning that reaches `sure_gain` has succeeded. Any other is judged once more after the
    refinement and the fit, which may find many items that it has not: by the cross-validation of
    the last fit, beside those of self-learning from wrong pairs, refined and fitted alike. It has
    failed if this chance-corrected agreement is below `min_gain`.
    """
    settings, key = run.settings.bootstrap, jax.random.key(run.random_seed)
    learned = _self_learning(problem, run)
    data = Data(problem.source, problem.target, *problem.pairs, key)

    def last_fit(state: State, stage: str = "refine") -> refinement.Fit:
        return refinement.fit(data, _refined(problem, run, data, state, stage), settings)

    fit = last_fit(learned.best.state)
    agreed, chance = learned.best.agreement, learned.chance_agreement
    if corrected_for_chance(agreed, chance) < settings.sure_gain:
        agreed = fit.agreement
        of_wrong_pairs = (
            last_fit(search.state, f"refine-{search.name}").agreement
            for search in learned.chance_searches
        )
        chance = chance_agreement(agreed, of_wrong_pairs, settings.min_gain)
    corrected = corrected_for_chance(agreed, chance)
    report = Report(
        agreed,
        chance,
        corrected_agreement=corrected,
        probability=float(success_probability(corrected, settings.min_gain)),
        failed=corrected < settings.min_gain,
        initialization=learned.best.name,
    )
    if report.failed:
        logging.warning(
            f"{run.part} has failed: maps fitted to some of its matches find "
            f"{report.agreement:.0%} of the others, where self-learning from wrong pairs has "
            f"{report.chance_agreement:.0%}; use more known pairs or more similar spaces."
        )
    return Converged(fit.maps, fit.to_target, fit.is_pair, report)


class _Search(NamedTuple):
    """The last state of self-learning from one initialization, and its agreement."""

    name: str
    state: State
    agreement: float


class _Learned(NamedTuple):
    """The best of all initializations, and its chance baseline.

    The searches from wrong pairs are as many as there were initializations. They are made when
    asked for.
    """

    best: _Search
    chance_agreement: float
    chance_searches: Iterator[_Search]


def _self_learning(problem: Problem, run: Run) -> _Learned:
    """Self-learning on the most frequent rows, from one initialization after the other."""
    settings = run.settings.bootstrap
    ranked = problem.ranks is not None
    data = _most_frequent(problem, run, settings.search_rows if ranked else UNRANKED_ROWS)
    curve = _curve(problem, run, data, data)
    searches: list[_Search] = []

    @cache
    def from_wrong_pairs(number: int) -> _Search:
        """From other wrong pairs for each number; as many steps as that initialization took."""
        # Target rows are in random order, so that pairing each with one of the next is wrong.
        some = np.arange(max(len(data.source_pairs), MIN_WRONG_PAIRS))
        partners = (some + 1 + number) % len(data.target)
        wrong = data._replace(source_pairs=some, target_pairs=partners)
        num_steps = int(searches[number].state.steps)
        name, state = f"chance-baseline-{number}", self_learning.state_of_pairs(wrong)
        return _search(name, state, wrong, run, num_steps, stage=name)

    for name, state in _initializations(problem, run, data):
        options = {"stage": f"self-learning-{name}", "evaluate": curve}
        searches.append(_search(name, state, data, run, settings.search_steps, **options))
        best = max(searches, key=lambda search: search.agreement)
        of_wrong_pairs = (from_wrong_pairs(number).agreement for number in range(len(searches)))
        chance = chance_agreement(best.agreement, of_wrong_pairs, settings.sure_gain)
        if corrected_for_chance(best.agreement, chance) >= settings.sure_gain:
            break
    return _Learned(best, chance, map(from_wrong_pairs, range(len(searches))))


def _search(name: str, state: State, data: Data, run: Run, num_steps: int, **options) -> _Search:
    settings = run.settings.bootstrap
    options |= {"num_steps": num_steps, "chunk": 4}
    state = self_learning.learn(run.train, state, data, settings, **options)
    return _Search(name, state, float(self_learning.agreement(state, data, settings)))


def _initializations(problem: Problem, run: Run, data: Data) -> Iterator[tuple[str, State]]:
    """Yields (name, state): the known pairs as they are, then those of the geometry."""
    if len(problem.target_pairs):
        yield "pairs", self_learning.state_of_pairs(data)
    if problem.ranks is None:
        data = _most_frequent(problem, run, UNRANKED_INITIALIZATION_ROWS)
    settings = run.settings
    candidates = initialization.candidates(data, settings.start, settings.goat)
    yield from initialization.through_groups(candidates, data, settings.bootstrap, run.train)


def _refined(problem: Problem, run: Run, data: Data, state: State, stage: str) -> Maps:
    """Maps by self-learning on all rows, partly whitened."""
    settings = run.settings.bootstrap
    whitened = refinement.whiten(data, state.maps, settings.refine_whiten)
    state = self_learning.learn(
        run.train,
        self_learning.initial_state(whitened.maps),
        whitened.data,
        dataclasses.replace(
            settings,
            pair_weight=0.0,  # so that pairs which contradict the other matches are rejected
            patience=1,
            tolerance=settings.refine_tolerance,
        ),
        stage=stage,
        num_steps=settings.refine_steps,
        chunk=2,
        evaluate=_curve(problem, run, whitened.data, data),
    )
    return refinement.compose(whitened.whitenings, state.maps)


def _curve(
    problem: Problem, run: Run, data: Data, unwhitened: Data
) -> Callable[[State], dict] | None:
    """For `Run.train`: the MRR by anchors that are fitted to a state's mutual matches."""

    def anchors(state):
        neighbours = run.settings.bootstrap.neighbours
        matches = self_learning.current_matches(state, data, neighbours)
        spaces = unwhitened.source, unwhitened.target
        return fit_anchors(*spaces, problem.source_anchors, matches.to_target, matches.mutual)

    return problem.mrr_curve(anchors, run.settings.k)


def _most_frequent(problem: Problem, run: Run, count: int) -> Data:
    """The most frequent rows of both spaces, those in known pairs first."""
    source_rows, target_rows = problem.most_frequent(count)
    pairs = np.arange(len(problem.target_pairs))
    source = jnp.take(problem.source, source_rows, axis=0)
    target = jnp.take(problem.target, target_rows, axis=0)
    return Data(source, target, pairs, pairs, jax.random.key(run.random_seed))
