"""The bootstrap as a method: search, refine on all rows, fit the anchors.

The mathematics is in bootstrap.py and starts.py; this module runs it, decides without labels
whether it has succeeded, and logs it.
"""

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from anchor_opt import bootstrap, starts
from anchor_opt.bootstrap import Data, Matches, State
from anchor_opt.relative import Problem, Result, Run
from common.linear import unit, whitening
from common.metrics import mrr
from common.retrieval import Dictionary, top_k

# Of rows without ranks the partner of each may be anywhere, and the search takes so many at first.
UNRANKED_ROWS = 20_000
UNRANKED_START_ROWS = 5_000  # the similarities [n, n] of so many rows fit into memory
ONE_TO_ONE_ROWS = 5_000  # at most, of both spaces, that are matched one to one; measured
# Of the logistic regression of success on the gain, on 45 development problems, see docs/results.
STEEPNESS = 27.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(bootstrap.Loop):
    """Values of the bootstrap; "measured" values were chosen on development pairs, see `Loop`."""

    # Search, on the most frequent rows; all rows if they have no ranks
    search_rows: int = 4_000
    search_steps: int = 100  # at most, of each search
    min_gain: float = 0.3  # smallest gain of a search that succeeds, see `_search`; measured

    # Starts from the geometry, if the search from the known pairs fails
    group_rows: int = 300  # rows of a group at first, see `bootstrap.grouped_step`; measured
    group_steps: int = 120  # at most, for each size of the groups

    # Refinement, on all rows
    refine_whiten: float = 0.75  # power of the whitening, measured
    refine_steps: int = 10  # at most
    refine_tolerance: float = 1e-3  # as `tolerance`


class Converged(NamedTuple):
    """The result of the bootstrap before anchors are fitted.

    Attributes:
      state: its maps, of the rows of `data`.
      data: all rows of the problem, partly whitened.
      maps: of the problem's own rows into the common coordinates, up to the length of rows.
      to_target: the target row that is matched with each source row.
      chosen: whether they are one of the pairs to which the maps are fitted.
      notes: agreement, null_agreement, gain, probability, failed, and start, see `_search`.
    """

    state: State
    data: Data
    maps: tuple[Float[Array, "d_source r"], Float[Array, "d_target r"]]
    to_target: Int[ArrayLike, " n"]
    chosen: Bool[ArrayLike, " n"]
    notes: dict


def run(problem: Problem, run: Run) -> Result:
    """The bootstrap: `converge`, then anchors fitted to the matched pairs."""
    found = converge(problem, run)
    spaces = problem.source, problem.target
    anchors = bootstrap.fit_anchors(*spaces, problem.source_anchors, found.to_target, found.chosen)
    matches = bootstrap.current_matches(found.state, found.data, run.settings.bootstrap.neighbours)
    rejected = rejected_pairs(matches, problem.source_pairs, problem.target_pairs)
    return Result(anchors, found.maps, found.notes | {"rejected_pairs": rejected})


def converge(problem: Problem, run: Run) -> Converged:
    """Search and refinement, which also work if the truth is unknown and the sizes differ.

    The refinement uses all rows. Both spaces are partly whitened, so that minor directions count.
    At its end the maps are fitted to the one-to-one matching of the rows if there are not too many
    of them, and otherwise to the mutual matches.
    """
    settings = run.settings.bootstrap
    state, notes = _search(problem, run)
    data, *whiten = _whitened(problem, all_rows(problem), settings.refine_whiten)
    # The rows of a whitened space, multiplied by the inverse, are the former rows up to length.
    undo = [whitening(x, -settings.refine_whiten) for x in (problem.source, problem.target)]
    state = run_loop(
        run,
        bootstrap.from_maps(undo[0] @ state.source_map, undo[1] @ state.target_map),
        data,
        dataclasses.replace(
            settings,
            pair_weight=0.0,  # so that pairs which contradict the other matches are rejected
            patience=1,
            tolerance=settings.refine_tolerance,
        ),
        stage="refine",
        num_steps=settings.refine_steps,
        chunk=2,
        evaluate=_fitted_curve(problem, run, data, problem.source, problem.target),
    )
    if max(len(data.source), len(data.target)) <= ONE_TO_ONE_ROWS:
        to_target, chosen = bootstrap.one_to_one(state, data, settings.neighbours)
    else:
        matches = bootstrap.current_matches(state, data, settings.neighbours)
        to_target, chosen = matches.to_target, matches.mutual
    fitted = jnp.where(chosen[:, None], data.target[to_target], 0.0)
    state = bootstrap.from_maps(*bootstrap.common_maps(data.source.T @ fitted, settings.reweight))
    maps = whiten[0] @ state.source_map, whiten[1] @ state.target_map
    return Converged(state, data, maps, to_target, chosen, notes)


def rejected_pairs(
    matches: Matches | Dictionary,
    source_pairs: Int[np.ndarray, " p"],
    target_pairs: Int[np.ndarray, " p"],
) -> list[int]:
    """Numbers of the known pairs of which neither row is matched with the other."""
    agreed = np.asarray(matches.to_target)[source_pairs] == target_pairs
    agreed |= np.asarray(matches.to_source)[target_pairs] == source_pairs
    return np.flatnonzero(~agreed).tolist()


def _search(problem: Problem, run: Run) -> tuple[State, dict]:
    """The loop on the most frequent rows, from one start after the other until one succeeds.

    Whether a search has succeeded is decided without labels, by its gain

        (agreement - null agreement) / (1 - null agreement)

    of `bootstrap.agreement`. The null agreement is that of the same loop from wrong pairs, with as
    many steps as the search took: the fewer dimensions there are, the better maps fit wrong
    matches. If no start succeeds, the search has failed, and the result of the highest agreement
    is returned.

    Returns:
      The state and the notes: agreement, null_agreement, gain, probability (of success, see
      `success_probability`), failed, start.
    """
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
            null, _, _ = search(bootstrap.from_pairs(wrong), wrong, most, stage="null")
        best, name, state = max(found, key=lambda one: one[0])
        gain = (best - null) / max(1 - null, 1e-6)
        if gain >= settings.min_gain:
            break
    failed = gain < settings.min_gain
    if failed:
        logging.warning(
            f"{run.part} has failed: maps fitted to half of its matches find {best:.0%} of the "
            f"other half, where a search from wrong pairs has {null:.0%}; use more known pairs or "
            "more similar spaces."
        )
    notes = {"agreement": best, "null_agreement": null, "gain": gain}
    notes["probability"] = float(success_probability(gain, settings.min_gain))
    return state, notes | {"failed": failed, "start": name}


def success_probability(gain: Float[ArrayLike, "..."], min_gain: float) -> Float[Array, "..."]:
    """Probability that a search of this gain has succeeded; one half at `min_gain`.

    Success: its map finds at least half of the items that the map fitted to all true pairs finds.
    """
    return jax.nn.sigmoid(STEEPNESS * (jnp.asarray(gain) - min_gain))


def run_loop(
    run: Run, start: State, data: Data, loop: bootstrap.Loop, step=bootstrap.step, **options
) -> State:
    """Repeats a step of the bootstrap until it is `done`; `options` are those of `Run.train`."""
    done = partial(bootstrap.done, settings=loop)
    return run.train(step, start, data, loop, done=done, **options)


def _starts(problem: Problem, data: Data, run: Run) -> Iterator[tuple[str, State]]:
    """Yields (name, state): the known pairs as they are, then the starts from the geometry.

    The latter are computed one by one: each of them is taken through a loop in groups, which are
    doubled in size until they are all rows.
    """
    if len(problem.target_pairs):
        yield "pairs", bootstrap.from_pairs(data)
    settings = run.settings.bootstrap
    if problem.ranks is None:
        data = _most_frequent(problem, UNRANKED_START_ROWS)
    found = starts.candidates(
        data.source,
        data.target,
        (data.source_pairs, data.target_pairs),
        run.settings.start,
        run.random_seed,
    )
    draw = (run.random_seed << 16) % 2**31  # an int32, far from that of other random seeds
    for name, covariance in found:
        maps = bootstrap.common_maps(covariance, settings.reweight)
        groups = min(len(data.source), len(data.target)) // settings.group_rows
        while groups > 1:
            loop = bootstrap.Grouped(
                neighbours=settings.neighbours,
                reweight=settings.reweight,
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
        yield f"{name}-geometry", bootstrap.from_maps(*maps)


def _whitened(problem: Problem, data: Data, power: float) -> tuple[Data, Array, Array]:
    """Unit rows of `data`, whitened by the moments of all rows, and the two whitening matrices."""
    source_map, target_map = whitening(problem.source, power), whitening(problem.target, power)
    source, target = unit(data.source @ source_map), unit(data.target @ target_map)
    return data._replace(source=source, target=target), source_map, target_map


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
        return {"mrr": mrr(top_k(source, target, run.settings.k)[1], np.arange(len(source)))}

    return None if problem.truth is None else evaluate


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
    source, target = problem.source[rows], problem.target[target_rows]
    return Data(source=source, target=target, source_pairs=pairs, target_pairs=pairs)
