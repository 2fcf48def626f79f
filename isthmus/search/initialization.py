"""Initializations of self-learning: maps from the geometry of both spaces and few or no pairs.

The rows of both spaces are described by numbers that a rotation of a space does not change, and the
descriptions are matched by CSLS. A description joins some of

  pairs      the cosines of a row with the rows in known pairs,
  profiles   its sorted similarities to all rows (Artetxe et al. 2018),
  clusters   its cosines with cluster centres, which are matched by quadratic assignment
             (mini-vec2vec, Dar 2025; Unpaired Rosetta, Schnaus et al. 2026).

The maps of these matches are improved by self-learning in random groups of rows. The rows are in an
order that does not tell which of them belong together.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from common import csls, multi_step
from common.arrays import AnyArray
from common.errors import UserError
from common.linear import preprocess, svd, unit
from isthmus.search import goat, self_learning
from isthmus.search.clusters import Settings, matched_centres
from isthmus.search.self_learning import Data, State

# From which no larger groups are needed. After the first ones it was .98 and more between noisy
# isometries and word spaces, .87 between MiniLM and MPNet, and .54 at most where the maps are wrong
# (GloVe -> minilm_input).
SETTLED_AGREEMENT = 0.8
MAX_GOAT_ROWS = 2_000  # of both spaces, of which GOAT gives a candidate; it takes about a minute


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupSettings(self_learning.Settings):
    """Values of `through_groups`, all measured."""

    group_rows: int = 300  # rows of a group at first, see `self_learning.grouped_step`
    group_steps: int = 120  # at most, for each size of the groups
    group_reweights: tuple[float, ...] = (0.5, 1.0)  # as `reweight`, tried in turn

    def __post_init__(self) -> None:
        if not self.group_reweights:
            raise UserError("The bootstrap has no group_reweights: give at least one power.")


class Candidate(NamedTuple):
    """The sum of x_i y_j' over the rows matched in either direction, and how they are matched."""

    name: str
    covariance: Float[Array, "d_source d_target"]


def candidates(data: Data, settings: Settings, goat_settings: goat.Settings) -> Iterator[Candidate]:
    """Yields candidates in the order in which they should be tried, each when it is asked for.

    Wrong pairs spoil the first two alone.
    """
    spaces, pairs = (data.source, data.target), (data.source_pairs, data.target_pairs)
    width = min(map(len, spaces))
    sorted_rows = [profiles(x, width) for x in spaces]
    if len(pairs[0]):
        cosines = [_pair_cosines(x, rows) for x, rows in zip(spaces, pairs, strict=True)]
        yield Candidate("pairs", _covariance(spaces, cosines, sorted_rows))
        if max(map(len, spaces)) <= MAX_GOAT_ROWS:
            yield Candidate("goat", goat.solve(*spaces, pairs, goat_settings))
    yield Candidate("profiles", _covariance(spaces, sorted_rows))
    for number, centres in enumerate(cluster_modes(data.key, *spaces, settings)):
        yield Candidate(f"clusters-{number}", centre_covariance(spaces, centres, sorted_rows))


def centre_covariance(
    spaces: tuple[Float[AnyArray, "n d"], Float[AnyArray, "m e"]],
    centres: tuple[Float[AnyArray, "k d"], Float[AnyArray, "k e"]],
    *descriptions: Sequence[Array],
) -> Float[Array, "d e"]:
    """The covariance of the rows matched by their cosines with centres, and other descriptions."""
    cosines = [_centre_cosines(x, c) for x, c in zip(spaces, centres, strict=True)]
    return _covariance(spaces, cosines, *descriptions)


@jax.jit
def _centre_cosines(
    x: Float[AnyArray, "n d"], centres: Float[AnyArray, "k d"]
) -> Float[Array, "n k"]:
    return preprocess(x @ unit(centres).T)


@jax.jit
def _pair_cosines(x: Float[AnyArray, "n d"], pairs: Int[AnyArray, " s"]) -> Float[Array, "n s"]:
    """Centred, and of mean squared length one; with one pair, unit rows would be signs alone."""
    cosines = jnp.asarray(x @ x[pairs].T)
    cosines -= cosines.mean(axis=0)
    return cosines / jnp.sqrt((cosines**2).sum(axis=1).mean())


def _covariance(spaces, *descriptions) -> Float[Array, "d_source d_target"]:
    """Sum of x_i y_j' over the rows that CSLS of the joined descriptions matches, both ways."""
    matches = csls.dictionary(*(_joined(*parts) for parts in zip(*descriptions, strict=True)))
    return _matched_covariance(*spaces, matches.to_target, matches.to_source)


@jax.jit
def _joined(*descriptions: Float[Array, "n _"]) -> Float[Array, "n _"]:
    return unit(jnp.concatenate(descriptions, axis=1))


_matched_covariance = jax.jit(self_learning.matched_covariance)


def profiles(x: Float[AnyArray, "n d"], width: int) -> Float[Array, "n width"]:
    """Each row's sorted similarities to all rows, preprocessed (Artetxe et al. 2018).

    They are the entries of the square root of the Gram matrix x x', which is held in memory,
    interpolated to `width` values, so that spaces of different size can be compared.
    """
    # XLA's sort on CPUs takes 2.2 s instead of .05 s for 4,000 rows.
    return _interpolated(np.sort(np.asarray(_root_of_gram(x)), axis=1), width)


@jax.jit
def _root_of_gram(x: Float[AnyArray, "n d"]) -> Float[Array, "n n"]:
    left, values, _ = svd(x)
    return (left * values) @ left.T


@partial(jax.jit, static_argnames="width")
def _interpolated(rows: Float[AnyArray, "n m"], width: int) -> Float[Array, "n width"]:
    return preprocess(jax.image.resize(rows, (len(rows), width), "linear"))


def cluster_modes(
    key: jax.Array,
    source: Float[AnyArray, "n d"],
    target: Float[AnyArray, "m e"],
    settings: Settings,
) -> list[tuple[Float[np.ndarray, "k d"], Float[np.ndarray, "k e"]]]:
    """Matched cluster centres of many samples, divided into the two kinds of samples that agree.

    The optima of different samples contradict each other: between word spaces most of them are of
    two kinds, which differ in the sign of a leading axis, and the mean of all samples (Unpaired
    Rosetta) is neither. The covariances M_s of the matched centres are therefore compared by their
    cosines: the leading eigenvector of that [S, S] matrix has one sign on the samples of one kind
    and the other sign on the rest. Returned are, for each kind with at least a tenth of the
    samples, the more frequent one first, the centres of both spaces, row i of both matched.
    """
    centres = matched_centres(jax.random.split(key, 3), (source, target), settings)
    x, y = map(np.asarray, centres)
    sign = np.asarray(_kind(*centres))
    kinds = sorted((sign, ~sign), key=np.sum, reverse=True)
    kinds = [kind for kind in kinds if kind.sum() >= settings.num_draws / 10]
    return [(np.concatenate(x[kind]), np.concatenate(y[kind])) for kind in kinds]


@jax.jit
def _kind(source: Float[Array, "s c d"], target: Float[Array, "s c e"]) -> Bool[Array, " s"]:
    """Of which of the two kinds the matched centres of each sample are."""
    left, right = (c - c.mean(axis=1, keepdims=True) for c in (source, target))
    moments = unit(jnp.einsum("scd,sce->sde", left, right).reshape(len(source), -1))
    return jnp.linalg.eigh(moments @ moments.T)[1][:, -1] > 0


def through_groups(
    candidates: Iterable[Candidate],
    data: Data,
    settings: GroupSettings,
    train: Callable[..., State],
) -> Iterator[tuple[str, State]]:
    """Yields (name, state): each candidate, improved by self-learning in groups of rows.

    The groups are doubled in size until they are all rows or `self_learning.agreement` says that
    the maps are right. All candidates are tried with the first of the powers `group_reweights`, and
    then all with the next; each is computed once.
    """
    copies = itertools.tee(candidates, len(settings.group_reweights))
    powers = zip(settings.group_reweights, copies, strict=True)
    tried = ((power, *candidate) for power, copy in powers for candidate in copy)
    for power, name, covariance in tried:
        name = f"{name}-geometry-{power:g}"
        maps = multi_step.fit_covariance(covariance, power)
        options = {"neighbours": settings.neighbours, "pair_weight": settings.pair_weight}
        groups = min(len(data.source), len(data.target)) // settings.group_rows
        while groups > 1:
            state = self_learning.learn(
                train,
                self_learning.initial_state(maps),
                data._replace(key=jax.random.fold_in(data.key, groups)),
                self_learning.GroupedSettings(reweight=power, groups=groups, **options),
                self_learning.grouped_step,
                stage=f"{name}-{groups}-groups",
                num_steps=settings.group_steps,
                chunk=5,
            )
            maps = state.maps
            groups //= 2
            if groups > 1 and self_learning.agreement(state, data, settings) >= SETTLED_AGREEMENT:
                break
        yield name, self_learning.initial_state(maps)
