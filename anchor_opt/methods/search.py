"""The bootstrap as a method: search, refine on all rows, fit maps and anchors to the matched pairs.

The mathematics is in bootstrap.py and starts.py; this module runs it, decides without labels
whether it has succeeded, and logs it.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from jaxtyping import Array, ArrayLike, Bool, Float, Int
from scipy.special import expit

from anchor_opt.methods import bootstrap, goat, starts
from anchor_opt.methods.bootstrap import Data, Matches, State
from anchor_opt.problem import Problem, Result, Run
from common.linear import mapped, whitening
from common.metrics import mrr
from common.retrieval import Dictionary, top_k

# Of rows without ranks the partner of each may be anywhere, and the search takes so many at first.
UNRANKED_ROWS = 20_000
UNRANKED_START_ROWS = 5_000  # the similarities [n, n] of so many rows fit into memory
GOAT_ROWS = 2_000  # at most, of both spaces, of which GOAT gives a start; it takes about a minute
ONE_TO_ONE_ROWS = 5_000  # at most, of both spaces, that are matched one to one; measured
# Of the logistic regression of success on the gain, on 45 development problems, see docs/results.
STEEPNESS = 27.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(bootstrap.Loop):
    """Values of the bootstrap; "measured" values were chosen on development pairs, see `Loop`."""

    # Search, on the most frequent rows; all rows if they have no ranks
    search_rows: int = 4_000
    search_steps: int = 100  # at most, of each search
    sure_gain: float = 0.5  # of a search, from which no further start is tried; measured
    min_gain: float = 0.3  # smallest gain of a success, see `converge`; measured

    # Starts from the geometry, if the search from the known pairs fails
    group_rows: int = 300  # rows of a group at first, see `bootstrap.grouped_step`; measured
    group_steps: int = 120  # at most, for each size of the groups
    group_reweights: tuple[float, ...] = (0.5, 1.0)  # as `reweight`, tried in turn; measured

    # Refinement, on all rows
    refine_whiten: float = 0.75  # power of the whitening, measured
    refine_steps: int = 10  # at most
    refine_tolerance: float = 1e-3  # as `tolerance`

    # Fit, to all rows
    rounds: int = 2  # of matching and fitting, measured
    whitenings: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)  # powers; cross-validation chooses one
    folds: int = 4  # of the cross-validation
    fold_rows: int = 1_000  # at most, of a fold


class Converged(NamedTuple):
    """The result of the bootstrap before anchors are fitted.

    Attributes:
      maps: of the problem's rows into the common coordinates, up to the length of rows.
      to_target: the target row that is matched with each source row.
      chosen: whether they are one of the pairs to which the maps are fitted.
      notes: agreement, null_agreement, gain, probability, failed, and start, see `converge`.
    """

    maps: tuple[Float[Array, "d_source r"], Float[Array, "d_target r"]]
    to_target: Int[ArrayLike, " n"]
    chosen: Bool[ArrayLike, " n"]
    notes: dict


def run(problem: Problem, run: Run) -> Result:
    """The bootstrap: `converge`, then anchors fitted to the matched pairs."""
    maps, to_target, chosen, notes = converge(problem, run)
    spaces = problem.source, problem.target
    found = Result(
        bootstrap.fit_anchors(*spaces, problem.source_anchors, to_target, chosen), maps, notes
    )
    neighbours = run.settings.bootstrap.neighbours
    matches = bootstrap.csls_matches(*found.coordinates(*spaces), neighbours=neighbours)
    rejected = rejected_pairs(matches, problem.source_pairs, problem.target_pairs)
    return found._replace(notes=notes | {"rejected_pairs": rejected})


def converge(problem: Problem, run: Run) -> Converged:
    """Search, refinement and fit; the truth may be unknown and the sizes of the spaces differ.

    Whether the result is right is decided without labels, by the gain

        (agreement - null agreement) / (1 - null agreement)

    The null agreement is that of a search from wrong pairs: the fewer dimensions there are, the
    better maps fit wrong matches. A search whose gain reaches `sure_gain` has succeeded. Any other
    is judged once more after the refinement and the fit, which may find many items that the search
    has not: by the cross-validation of the last fit, beside that of the search from wrong pairs,
    refined and fitted alike. It has failed if this gain is below `min_gain`.
    """
    found = _search(problem, run)
    data, settings = all_rows(problem), run.settings.bootstrap
    *converged, agreement = _fitted(data, _refined(problem, run, data, found.state), settings)
    gain, null_agreement = found.gain, found.null_agreement
    if gain >= settings.sure_gain:
        agreement = found.agreement
    else:
        wrong = _refined(problem, run, data, found.null, stage="refine-null")
        null_agreement = _fitted(data, wrong, settings)[-1]
        gain = _gain(agreement, null_agreement)
    failed = gain < settings.min_gain
    if failed:
        logging.warning(
            f"{run.part} has failed: maps fitted to some of its matches find {agreement:.0%} of "
            f"the others, where a search from wrong pairs has {null_agreement:.0%}; use more known "
            "pairs or more similar spaces."
        )
    notes = {"agreement": agreement, "null_agreement": null_agreement, "gain": gain}
    notes["probability"] = float(success_probability(gain, settings.min_gain))
    return Converged(*converged, notes | {"failed": failed, "start": found.start})


def _refined(
    problem: Problem, run: Run, data: Data, state: State, stage: str = "refine"
) -> tuple[Array, Array]:
    """The loop on all rows, partly whitened, so that minor directions count."""
    settings = run.settings.bootstrap
    power = settings.refine_whiten
    whitened, whiten, maps = _into_whitened(data, (state.source_map, state.target_map), power)
    state = run_loop(
        run,
        bootstrap.from_maps(*maps),
        whitened,
        dataclasses.replace(
            settings,
            pair_weight=0.0,  # so that pairs which contradict the other matches are rejected
            patience=1,
            tolerance=settings.refine_tolerance,
        ),
        stage=stage,
        num_steps=settings.refine_steps,
        chunk=2,
        evaluate=_fitted_curve(problem, run, whitened, data.source, data.target),
    )
    return _composed(whiten, (state.source_map, state.target_map))


def _fitted(
    data: Data, maps: tuple[Array, Array], settings: Settings
) -> tuple[tuple[Array, Array], Int[ArrayLike, " n"], Bool[ArrayLike, " n"], float]:
    """Matches all rows and fits maps to the pairs, in turn.

    Rows are matched one to one if there are not too many, and otherwise with their mutual nearest
    rows. How much whitening before the fit is good depends on the number of rows for the
    dimensions; it is chosen by cross-validation on the pairs.

    Returns:
      Maps, to_target and chosen of `Converged`, and the result of the last cross-validation.
    """
    size = min(settings.fold_rows, len(data.source) // settings.folds)
    rows = np.random.default_rng(0).permutation(len(data.source))
    folds = rows[: settings.folds * size].reshape(settings.folds, size)
    for _ in range(settings.rounds):
        to_target, chosen = _pairs(data, maps, settings.neighbours)
        fits = [
            _fit(data, to_target, chosen, folds, power, settings) for power in settings.whitenings
        ]
        found_again, maps = max(fits, key=lambda fit: float(fit[0]))
    return maps, to_target, chosen, float(found_again)


@partial(jax.jit, static_argnames="settings")
def _fit(
    data: Data, to_target: Array, chosen: Array, folds: Array, power: float, settings: Settings
) -> tuple[Array, tuple[Array, Array]]:
    """The cross-validation of maps fitted to pairs of partly whitened rows, and these maps."""
    whitened, *whiten = _whitened(data, power)
    found_again = bootstrap.validation(whitened, to_target, chosen, folds, settings)
    partners = jnp.where(chosen[:, None], whitened.target[to_target], 0.0)
    maps = bootstrap.common_maps(whitened.source.T @ partners, settings.reweight)
    return found_again, _composed(whiten, maps)


def _pairs(
    data: Data, maps: Sequence[Array], neighbours: int
) -> tuple[Int[ArrayLike, " n"], Bool[ArrayLike, " n"]]:
    """The target row of each source row in common coordinates, and whether they are a pair."""
    both = bootstrap.coordinates(bootstrap.from_maps(*maps), data)
    if max(map(len, both)) <= ONE_TO_ONE_ROWS:
        return bootstrap.one_to_one(*both, neighbours)
    found = bootstrap.csls_matches(*both, neighbours=neighbours)
    return found.to_target, found.mutual


def rejected_pairs(
    matches: Matches | Dictionary,
    source_pairs: Int[np.ndarray, " p"],
    target_pairs: Int[np.ndarray, " p"],
) -> list[int]:
    """Numbers of the known pairs of which neither row is matched with the other."""
    agreed = np.asarray(matches.to_target)[source_pairs] == target_pairs
    agreed |= np.asarray(matches.to_source)[target_pairs] == source_pairs
    return np.flatnonzero(~agreed).tolist()


class Found(NamedTuple):
    """The result of the search, and of the same from wrong pairs.

    Attributes:
      state: of the start with the highest agreement.
      start: its name.
      agreement: see `bootstrap.agreement`.
      null: the state of the search from wrong pairs, which takes as many steps.
      null_agreement: its agreement.
      gain: see `converge`.
    """

    state: State
    start: str
    agreement: float
    null: State
    null_agreement: float
    gain: float


def _search(problem: Problem, run: Run) -> Found:
    """The loop on the most frequent rows, from one start after the other until one is sure."""
    settings = run.settings.bootstrap
    ranked = problem.ranks is not None
    data = _most_frequent(problem, settings.search_rows if ranked else UNRANKED_ROWS)

    def search(start, data, num_steps, **options):
        options |= {"num_steps": num_steps, "chunk": 4}
        first = int(start.draw)
        state = run_loop(run, start, data, settings, **options)
        steps = (int(state.draw) - first) // 2
        return float(bootstrap.agreement(state, data, settings)), state, steps

    # The rows of the target are in random order, so that pairing each with the next one is wrong.
    some = np.arange(max(len(data.source_pairs), 15))
    wrong = data._replace(source_pairs=some, target_pairs=(some + 1) % len(data.target))
    curve = _fitted_curve(problem, run, data, data.source, data.target)
    found, most = [], 0
    for name, start in _starts(problem, data, run):
        options = {"stage": f"search-{name}", "evaluate": curve}
        agreement, state, steps = search(start, data, settings.search_steps, **options)
        found.append((agreement, name, state))
        if steps > most:  # the null search is continued
            most = steps
            null, wrong_state, _ = search(bootstrap.from_pairs(wrong), wrong, most, stage="null")
        best, name, state = max(found, key=lambda one: one[0])
        gain = _gain(best, null)
        if gain >= settings.sure_gain:
            break
    return Found(state, name, best, wrong_state, null, gain)


def _gain(agreement: float, null_agreement: float) -> float:
    return (agreement - null_agreement) / max(1 - null_agreement, 1e-6)


def success_probability(gain: Float[ArrayLike, "..."], min_gain: float) -> Float[np.ndarray, "..."]:
    """Probability that a search of this gain has succeeded; one half at `min_gain`.

    Success: its map finds at least half of the items that the map fitted to all true pairs finds.
    """
    return expit(STEEPNESS * (np.asarray(gain) - min_gain))


def run_loop(
    run: Run, start: State, data: Data, loop: bootstrap.Loop, step=bootstrap.step, **options
) -> State:
    """Repeats a step of the bootstrap until it is `done`; `options` are those of `Run.train`."""
    done = partial(bootstrap.done, settings=loop)
    return run.train(step, start, data, loop, done=done, **options)


def _starts(problem: Problem, data: Data, run: Run) -> Iterator[tuple[str, State]]:
    """Yields (name, state): the known pairs as they are, then the starts from the geometry.

    The latter are computed one by one, and each of them is taken through the groups: all with the
    first of the powers `group_reweights`, then all with the next.
    """
    if len(problem.target_pairs):
        yield "pairs", bootstrap.from_pairs(data)
    if problem.ranks is None:
        data = _most_frequent(problem, UNRANKED_START_ROWS)
    first, *others = run.settings.bootstrap.group_reweights
    found = []
    for candidate in _candidates(data, run):
        found.append(candidate)
        yield _through_groups(*candidate, first, data, run)
    for power, candidate in itertools.product(others, found):
        yield _through_groups(*candidate, power, data, run)


def _through_groups(
    name: str, covariance: Array, power: float, data: Data, run: Run
) -> tuple[str, State]:
    """A start and its name: the loop in groups, doubled in size until they are all rows."""
    settings = run.settings.bootstrap
    name = f"{name}-geometry-{power:g}"
    draw = (run.random_seed << 16) % 2**31  # an int32, far from that of other random seeds
    maps = bootstrap.common_maps(covariance, power)
    groups = min(len(data.source), len(data.target)) // settings.group_rows
    while groups > 1:
        loop = bootstrap.Grouped(
            neighbours=settings.neighbours,
            reweight=power,
            pair_weight=settings.pair_weight,
            groups=groups,
        )
        state = run_loop(
            run,
            bootstrap.from_maps(*maps, draw=draw),
            data,
            loop,
            bootstrap.grouped_step,
            stage=f"{name}-{groups}-groups",
            num_steps=settings.group_steps,
            chunk=5,
        )
        maps = state.source_map, state.target_map
        groups //= 2
    return name, bootstrap.from_maps(*maps)


def _candidates(data: Data, run: Run) -> Iterator[tuple[str, Float[Array, "d_source d_target"]]]:
    """`starts.candidates`, and after the first the map of GOAT if there are pairs and few rows."""
    given = data.source, data.target, (data.source_pairs, data.target_pairs)
    found = starts.candidates(*given, run.settings.start, run.random_seed)
    if len(data.source_pairs) and max(len(data.source), len(data.target)) <= GOAT_ROWS:
        yield next(found)
        yield "goat", goat.solve(*given, run.settings.goat, run.random_seed)
    yield from found


@jax.jit
def _into_whitened(
    data: Data, maps: tuple[Array, Array], power: float
) -> tuple[Data, list[Array], tuple[Array, Array]]:
    """`_whitened`, the two whitening matrices, and `maps` of the whitened rows."""
    whitened, *whiten = _whitened(data, power)
    # The rows of a whitened space, multiplied by the inverse, are the former rows up to length.
    undo = [whitening(x, -power) for x in (data.source, data.target)]
    return whitened, whiten, _composed(undo, maps)


@jax.jit
def _composed(first: Sequence[Array], second: Sequence[Array]) -> tuple[Array, Array]:
    """The products of two maps of both spaces."""
    return tuple(map(jnp.matmul, first, second))


@jax.jit
def _whitened(data: Data, power: float) -> tuple[Data, Array, Array]:
    """Unit rows of both spaces, whitened in part, and the two whitening matrices."""
    maps = whitening(data.source, power), whitening(data.target, power)
    source, target = mapped(data.source, maps[0]), mapped(data.target, maps[1])
    return data._replace(source=source, target=target), *maps


def _fitted_curve(
    problem: Problem, run: Run, data: Data, source: Array, target: Array
) -> Callable[[State], dict] | None:
    """`curve` of anchors that are fitted to a state's mutual matches.

    `source` and `target` are the rows of `data`, unwhitened.
    """

    def anchors(state):
        found = bootstrap.current_matches(state, data, run.settings.bootstrap.neighbours)
        given = source, target, problem.source_anchors, found.to_target, found.mutual
        return bootstrap.fit_anchors(*given)

    return curve(problem, run, anchors)


def curve(
    problem: Problem, run: Run, anchors_of: Callable[[Any], Float[Array, "k d_target"]]
) -> Callable[[Any], dict] | None:
    """For `Run.train`: the MRR of the source items among the target's relative rows over the steps.

    None if the truth is unknown. No method reads this value.
    """

    def evaluate(state):
        source, target = problem.relative(anchors_of(state))
        return {"mrr": _mrr(source, target, run.settings.k)}

    return None if problem.truth is None else evaluate


@partial(jax.jit, static_argnames="k")
def _mrr(source: Array, target: Array, k: int) -> Float[Array, ""]:
    return mrr(top_k(source, target, k)[1], jnp.arange(len(source)))


def all_rows(problem: Problem) -> Data:
    """All rows of both spaces, and the known pairs."""
    return Data(
        source=problem.source,
        target=problem.target,
        source_pairs=problem.source_pairs,
        target_pairs=problem.target_pairs,
    )


def _most_frequent(problem: Problem, count: int) -> Data:
    """The most frequent rows of both spaces, those in known pairs first."""
    rows, target_rows = problem.most_frequent(count)
    pairs = np.arange(len(problem.target_pairs))
    source = jnp.take(problem.source, rows, axis=0)
    target = jnp.take(problem.target, target_rows, axis=0)
    return Data(source=source, target=target, source_pairs=pairs, target_pairs=pairs)
