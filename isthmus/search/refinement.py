"""Refinement of maps on all rows: partly whitened spaces, and fits that cross-validation chooses.

Partial whitening makes minor directions count.
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from common import csls, multi_step
from common.arrays import RealNumber
from common.errors import UserError
from common.linear import Maps, Moment, apply_map, second_moment, whitening_of
from isthmus.search import self_learning
from isthmus.search.self_learning import Data

MAX_ONE_TO_ONE_ROWS = 5_000  # of both spaces, that are matched one to one; measured


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(self_learning.Settings):
    """Values of the refinement; "measured" values were chosen on development pairs."""

    refine_whiten: float = 0.75  # power of the whitening, measured
    refine_steps: int = 10  # at most
    refine_tolerance: float = 1e-3  # as `tolerance`

    # Fit, to all rows
    rounds: int = 2  # of matching and fitting, measured
    whitenings: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)  # powers; cross-validation chooses one
    folds: int = 4  # of the cross-validation
    fold_rows: int = 1_000  # at most, of a fold


Moments = tuple[Moment, Moment]  # of the source's rows and of the target's


@jax.jit
def whiten(data: Data, maps: Maps, power: RealNumber) -> tuple[Data, Maps, Maps]:
    """Whitens both spaces by a power from 0 (not at all) to 1.

    Returns the whitened rows, of unit length, the matrices by which rows are multiplied, and the
    maps of whitened rows into the former common coordinates.
    """
    moments = _moments(data)
    whitened, whitenings = _whitened(data, moments, power)
    # The rows of a whitened space, multiplied by the inverse, are the former rows up to length.
    undo = Maps(*(whitening_of(moment, -power) for moment in moments))
    return whitened, whitenings, compose(undo, maps)


@jax.jit
def _moments(data: Data) -> Moments:
    return second_moment(data.source), second_moment(data.target)


@jax.jit
def _whitened(data: Data, moments: Moments, power: RealNumber) -> tuple[Data, Maps]:
    maps = Maps(*(whitening_of(moment, power) for moment in moments))
    source, target = apply_map(data.source, maps.source), apply_map(data.target, maps.target)
    return data._replace(source=source, target=target), maps


@jax.jit
def compose(first: Maps, second: Maps) -> Maps:
    """The products of two maps of both spaces."""
    return Maps(first.source @ second.source, first.target @ second.target)


class Fit(NamedTuple):
    """Maps that are fitted to pairs of matched rows."""

    maps: Maps  # of both spaces into common coordinates, up to the length of rows
    to_target: Int[ArrayLike, " n"]  # the row that is matched with each source row
    is_pair: Bool[ArrayLike, " n"]  # whether they are a pair to which the maps are fitted
    agreement: float  # fraction of left-out pairs that such maps find again, see `validation`


def fit(data: Data, maps: Maps, settings: Settings) -> Fit:
    """Matches all rows and fits maps to the pairs, in turn.

    How much whitening before the fit is good depends on the number of rows for the dimensions; it
    is chosen by cross-validation on the pairs.
    """
    if settings.rounds < 1 or not settings.whitenings:
        raise UserError(
            f"The bootstrap has rounds={settings.rounds} and whitenings={settings.whitenings}: "
            "give at least one of each, by which maps are fitted to all rows."
        )
    size = min(settings.fold_rows, len(data.source) // settings.folds)
    rows = np.random.default_rng(0).permutation(len(data.source))
    folds = rows[: settings.folds * size].reshape(settings.folds, size)
    moments = _moments(data)
    for _ in range(settings.rounds):
        pairs = _pairs(data, maps, settings.neighbours)
        fits = [
            _fit(data, moments, *pairs, folds, power, settings) for power in settings.whitenings
        ]
        agreement, maps = max(fits, key=lambda fit: float(fit[0]))
    return Fit(maps, pairs.to_target, pairs.is_pair, float(agreement))


def _pairs(data: Data, maps: Maps, neighbours: int) -> csls.OneToOne:
    """The target row of each source row, one to one if these are not too many, or mutual ones."""
    source, target = self_learning.coordinates(maps, data)
    if max(len(source), len(target)) <= MAX_ONE_TO_ONE_ROWS:
        return csls.one_to_one(source, target, neighbours)
    matches = csls.matches(source, target, neighbours=neighbours)
    return csls.OneToOne(matches.to_target, matches.mutual)


@partial(jax.jit, static_argnames="settings")
def _fit(data: Data, moments: Moments, to_target, is_pair, folds, power, settings: Settings):
    """The cross-validation of maps fitted to pairs of partly whitened rows, and these maps."""
    whitened, whitenings = _whitened(data, moments, power)
    agreement = validation(whitened, to_target, is_pair, folds, settings)
    partners = jnp.where(is_pair[:, None], whitened.target[to_target], 0.0)
    maps = multi_step.fit_covariance(whitened.source.T @ partners, settings.reweight)
    return agreement, compose(whitenings, maps)


@partial(jax.jit, static_argnames="settings")
def validation(
    data: Data,
    to_target: Int[Array, " n"],
    is_pair: Bool[Array, " n"],
    folds: Int[Array, "f q"],
    settings: self_learning.Settings,
) -> Float[Array, ""]:
    """The fraction of matched pairs that maps which are fitted to other pairs find again.

    Maps are fitted to the pairs outside of a fold, and match its source rows by CSLS among all
    target rows. A row of a fold that is in no pair takes no part.
    """
    partners = jnp.where(is_pair[:, None], data.target[to_target], 0.0)
    covariance = data.source.T @ partners

    def num_found_again(rows):
        source = data.source[rows]
        without = covariance - source.T @ partners[rows]
        maps = multi_step.fit_covariance(without, settings.reweight)
        spaces = apply_map(source, maps.source), apply_map(data.target, maps.target)
        again = csls.best_keys(*spaces, settings.neighbours) == to_target[rows]
        return (again & is_pair[rows]).sum()

    return lax.map(num_found_again, folds).sum() / jnp.maximum(is_pair[folds].sum(), 1)
