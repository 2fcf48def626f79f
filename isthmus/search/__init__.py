"""The search: from few known pairs of rows, or none, to maps of two spaces that match their rows.

Self-learning on the most frequent rows, from one initialization after the other until one succeeds
(self_learning.py, initialization.py), then refinement and a fit on all rows (refinement.py).

Whether it has succeeded is decided without labels. Right maps find most matches again that they
were not fitted to. But the fewer dimensions there are, the better maps fit wrong matches, too. The
agreement is therefore compared with its chance baseline, that of self-learning from wrong pairs:

    gain = (agreement - chance agreement) / (1 - chance agreement)

The result is the best of several initializations, and so the baseline is the best of as many
searches from wrong pairs.
"""

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float, Int
from scipy.special import expit, logit

from common.linear import Maps
from common.metrics import Estimate
from common.run.train import Stages
from isthmus.search import initialization, refinement, self_learning
from isthmus.search.disjoint import Settings as Disjoint
from isthmus.search.goat import Settings as Goat
from isthmus.search.self_learning import Data, State

# Of rows without ranks the partner of each may be anywhere, and so many are taken at first.
UNRANKED_ROWS = 20_000
UNRANKED_INITIALIZATION_ROWS = 5_000  # the similarities [n, n] of so many rows fit into memory
MIN_WRONG_PAIRS = 15  # of the chance baseline
# Of the logistic regression of success on the gain, on 45 development problems, see
# docs/results/frontier/constants.md.
STEEPNESS = 27.0
# Of the regression in `expected_share` on searches that had succeeded, see docs/expected.md.
SHARES = 0.005, 0.995  # beyond which log odds are not taken
SHARE_WEIGHTS, SHARE_WIDTH = np.array([-1.46, 0.21, 1.11, -1.51]), 0.56

Ranks = tuple[Int[np.ndarray, " n"], Int[np.ndarray, " m"]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Steps(refinement.Settings, initialization.GroupSettings):
    """Values of self-learning and its refinement; "measured" ones: on development pairs."""

    # Self-learning, on the most frequent rows; all rows if they have no ranks
    search_rows: int = 4_000
    search_steps: int = 100  # at most, from each initialization
    sure_gain: float = 0.5  # from which no further initialization is tried; measured
    min_gain: float = 0.3  # smallest of a success, see `search`; measured


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of the search."""

    steps: Steps = dataclasses.field(default_factory=Steps)
    start: initialization.Settings = dataclasses.field(default_factory=initialization.Settings)
    goat: Goat = dataclasses.field(default_factory=Goat)
    disjoint: Disjoint = dataclasses.field(default_factory=Disjoint)


class Report(NamedTuple):
    """What the search says about its own result; it does not read the true pairing for it."""

    agreement: float  # fraction of matches that maps fitted to other matches find again
    chance_agreement: float  # the highest of self-learning from wrong pairs
    corrected_agreement: float  # the gain, see above
    probability: float  # of success, see `success_probability`
    failed: bool  # whether that is less than one half
    initialization: str  # name of the best one


class Learned(NamedTuple):
    """Where self-learning from one initialization ended, and the agreement there."""

    name: str
    state: State
    agreement: float


def search(
    data: Data, ranks: Ranks | None, settings: Settings, train: Stages
) -> tuple[refinement.Fit, Report]:
    """Finds maps that match the rows of two spaces, and whether they are right.

    Self-learning whose gain reaches `sure_gain` has succeeded. Any other is judged once more after
    the refinement and the fit, which may find many items that it has not: by the cross-validation
    of the last fit, beside those of self-learning from wrong pairs, refined and fitted alike. It
    has failed if this gain is below `min_gain`.

    The spaces are centred unit rows, in an order that tells nothing of their partners; `ranks` are
    of the rows of each by its own frequencies, the smallest for the most frequent row. No row is in
    two known pairs.
    """
    steps = settings.steps
    count = UNRANKED_ROWS if ranks is None else steps.search_rows
    rows = most_frequent(data, ranks, count)
    found = []  # from the initializations

    def learn(name: str, state: State, rows: Data, num_steps: int, stage: str) -> Learned:
        options = {"stage": stage, "num_steps": num_steps, "chunk": 4}
        state = self_learning.learn(train, state, rows, steps, **options)
        return Learned(name, state, float(self_learning.agreement(state, rows, steps)))

    @cache
    def from_wrong_pairs(number: int) -> Learned:
        """As many steps as the initialization of the same number took."""
        # Target rows are in random order, so that pairing each with one of the next is wrong.
        some = np.arange(max(len(rows.source_pairs), MIN_WRONG_PAIRS))
        partners = (some + 1 + number) % len(rows.target)
        paired = rows._replace(source_pairs=some, target_pairs=partners)
        name = f"chance-baseline-{number}"
        start, taken = self_learning.state_of_pairs(paired), int(found[number].state.steps)
        return learn(name, start, paired, taken, name)

    def last_fit(learned: Learned, stage: str) -> refinement.Fit:
        return refinement.fit(data, _refined(data, learned, steps, train, stage), steps)

    for name, start in _initializations(data, rows, ranks, settings, train):
        found.append(learn(name, start, rows, steps.search_steps, f"self-learning-{name}"))
        best = max(found, key=lambda learned: learned.agreement)
        agreement = best.agreement
        searches = (from_wrong_pairs(i).agreement for i in range(len(found)))
        chance = chance_agreement(agreement, searches, steps.sure_gain)
        if gain(agreement, chance) >= steps.sure_gain:
            break
    fit = last_fit(best, "refine")
    if gain(agreement, chance) < steps.sure_gain:
        agreement, wrong = fit.agreement, map(from_wrong_pairs, range(len(found)))
        fits = (last_fit(learned, f"refine-{learned.name}").agreement for learned in wrong)
        chance = chance_agreement(agreement, fits, steps.min_gain)
    corrected = gain(agreement, chance)
    failed = corrected < steps.min_gain
    probability = float(success_probability(corrected, steps.min_gain))
    report = Report(agreement, chance, corrected, probability, failed, best.name)
    return fit, report


def gain(agreement: float, chance_agreement: float) -> float:
    """The agreement, scaled so that the chance baseline is 0 and full agreement 1."""
    return (agreement - chance_agreement) / max(1 - chance_agreement, 1e-6)


def chance_agreement(agreement: float, searches: Iterator[float], threshold: float) -> float:
    """The highest agreement of searches from wrong pairs.

    They are made while the gain is at the threshold or above; a higher baseline changes no failure.
    """
    highest = 0.0
    for chance in searches:
        highest = max(highest, chance)
        if gain(agreement, highest) < threshold:
            break
    return highest


def success_probability(
    gain: Float[ArrayLike, "..."], threshold: float
) -> Float[np.ndarray, "..."] | np.floating:
    """Probability that a search of this gain finds half of what the map of all true pairs does."""
    return expit(STEEPNESS * (np.asarray(gain) - threshold))


def expected_share(gain: float, mutual: int, rows: int, others: int) -> Estimate:
    """The share of the rows whose best match is right, of a search that has succeeded.

    Rows without a partner count as wrong. `mutual` are the best match of theirs, one of `others`.
    Half the interval is at least .01, since log odds are not taken beyond `SHARES`.
    """
    center = SHARE_WEIGHTS @ predictors(gain, mutual, rows, others)
    value, low, high = expit(center + SHARE_WIDTH * np.array([0, -1, 1])).tolist()
    return Estimate(value, max(value - low, high - value, 0.01))


def predictors(gain: float, mutual: int, rows: int, others: int) -> Float[np.ndarray, "4"]:
    """1, the log odds of the gain and of the share of mutual rows, and the log ratio of sizes."""
    shares = np.clip([gain, mutual / rows], *SHARES)
    return np.array([1.0, *logit(shares), np.log(others / rows)])


def _initializations(
    everything: Data, rows: Data, ranks: Ranks | None, settings: Settings, train: Callable
) -> Iterator[tuple[str, State]]:
    """Yields (name, state): the known pairs as they are, then those of the geometry."""
    if len(rows.source_pairs):
        yield "pairs", self_learning.state_of_pairs(rows)
    if ranks is None:
        rows = most_frequent(everything, None, UNRANKED_INITIALIZATION_ROWS)
    candidates = initialization.candidates(rows, settings.start, settings.goat)
    yield from initialization.through_groups(candidates, rows, settings.steps, train)


def _refined(data: Data, learned: Learned, steps: Steps, train: Callable, stage: str) -> Maps:
    """Maps by self-learning on all rows, partly whitened."""
    whitened, whitenings, maps = refinement.whiten(data, learned.state.maps, steps.refine_whiten)
    # Without weight, pairs which contradict the other matches are rejected.
    values = dataclasses.replace(
        steps, pair_weight=0.0, patience=1, tolerance=steps.refine_tolerance
    )
    options = {"stage": stage, "num_steps": steps.refine_steps, "chunk": 2}
    start = self_learning.initial_state(maps)
    state = self_learning.learn(train, start, whitened, values, **options)
    return refinement.compose(whitenings, state.maps)


def most_frequent(data: Data, ranks: Ranks | None, count: int) -> Data:
    """The known pairs and then the most frequent other rows of each space, `count` in all.

    Each space is ranked by its own frequencies, so that the two selections may differ in some
    items; without ranks the first rows are taken. All known pairs are kept, even if they are more.
    """

    def chosen(x, pairs, rank):
        others = np.setdiff1d(np.argsort(rank, kind="stable"), pairs, assume_unique=True)
        rows = np.concatenate([pairs, np.sort(others[: max(count - len(pairs), 0)])])
        return jnp.take(x, rows, axis=0)

    rank, target_rank = ranks or (np.arange(len(data.source)), np.arange(len(data.target)))
    source = chosen(data.source, data.source_pairs, rank)
    target = chosen(data.target, data.target_pairs, target_rank)
    first = np.arange(len(data.source_pairs))
    return Data(source, target, first, first, data.key)
