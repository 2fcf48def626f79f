r"""Several spaces in common coordinates, by rotations that agree with each other.

Maps that are fitted to each pair of spaces alone contradict each other: i -> j -> k is not i -> k.
Here each space i has one map into common coordinates, those of one of the spaces, the reference.
Rows x of space i are partly whitened, x' = unit(x C_i^(-1/4)) with the second moment C_i, so that
minor directions count, and rotated by W_i. With the matches P_ij of pairs of spaces, the W_i solve
the synchronisation of rotations

  maximise  sum_{i < j} sum_{(a, b) in P_ij} <x'_a W_i, y'_b W_j>,  W_i W_i' = I or W_i' W_i = I

(generalised Procrustes analysis, Gower 1975; with matches of all pairs of languages, Alaux et al.
2019). W of the reference is the identity, which is no restriction. If all others are fixed, the
best W_i is the polar factor of sum_j M_ij W_j, where M_ij sums the outer products of x'_a and y'_b
over P_ij; the W_i are replaced in turn.
"""

import itertools
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from common import csls
from common.arrays import AnyArray
from common.linear import apply_map, polar, unit, whitening

Link = tuple[str, str]  # names of two spaces
Cycle = tuple[str, str, str]
Pairs = Int[np.ndarray, "_ 2"]  # rows of two spaces that are matched
Spaces = Mapping[str, Float[Array, "n d"]]  # name -> unit rows, the most frequent ones first
Maps = dict[str, Float[Array, "d r"]]
# Power of the whitening; 0 finds fewer partners between word spaces, .25 and .75 about as many.
POWER = 0.5
MAX_SWEEPS = 200
TOLERANCE = 1e-6  # relative gain of the objective at which the sweeps stop


class Error(NamedTuple):
    """An error of maps that are fitted to each pair of spaces alone, and of the common maps."""

    alone: float
    common: float


class Check(NamedTuple):
    """Errors of maps of both kinds; zero is best.

    Attributes:
      links: 1 - mean cosine of matches of two spaces, of which half are left out of the fit.
      cycles: 1 - mean cosine of a row of the first space with itself after a way through the two
        others and back. Zero for common maps if all spaces have the same number of dimensions.
      lost: the fraction of matches i -> j -> k -> i that do not end at their first row.
    """

    links: dict[Link, Error]
    cycles: dict[Cycle, Error]
    lost: dict[Cycle, Error]


class CommonCoordinates(NamedTuple):
    """Spaces in common coordinates.

    Attributes:
      maps: of unit rows of each space into the common coordinates, from the right, up to length.
      pairs: the matches of each pair of spaces in these coordinates.
      check: the errors of these maps, and of maps fitted to each pair of spaces alone.
    """

    maps: Maps
    pairs: dict[Link, Pairs]
    check: Check


def join(spaces: Spaces, pairs: Mapping[Link, Pairs], reference: str) -> CommonCoordinates:
    """Maps all spaces into the reference's coordinates, and matches each pair of spaces there.

    The maps are fitted to the given matches, and again to the matches of all pairs of spaces that
    these maps give. More such rounds change nothing that matters.

    Args:
      spaces: two or more.
      pairs: matches of pairs of spaces, which connect all of them with the reference.
      reference: name of one of the spaces. Directions are lost if it has fewer dimensions than
        others.
    """
    whiten = {name: whitening(x, POWER) for name, x in spaces.items()}
    rows = {name: apply_map(x, whiten[name]) for name, x in spaces.items()}
    fitted_to = match(rows, fit(rows, pairs, reference))
    maps = fit(rows, fitted_to, reference)
    matches = match(rows, maps)
    return CommonCoordinates(
        maps={name: whiten[name] @ maps[name] for name in spaces},
        pairs=matches,
        check=_check(rows, fitted_to, maps, matches, reference),
    )


def fit(spaces: Spaces, pairs: Mapping[Link, Pairs], reference: str) -> Maps:
    """The rotations that fit given matches best; `pairs` connect all spaces with the reference."""
    products = {(i, j): _product(spaces[i], spaces[j], rows) for (i, j), rows in pairs.items()}
    maps = {reference: jnp.eye(spaces[reference].shape[1])}
    while len(maps) < len(spaces):  # in the order of the number of matches with those mapped before
        reached = [link for link in pairs if (link[0] in maps) != (link[1] in maps)]
        link = max(reached, key=lambda link: len(pairs[link]))
        name = link[0] if link[1] in maps else link[1]
        maps[name] = _map_of(name, products, maps)
    return _synchronised(products, maps, reference)


@jax.jit
def _product(
    source: Float[Array, "n d"], target: Float[Array, "m e"], pairs: Int[AnyArray, "_ 2"]
) -> Float[Array, "d e"]:
    """Sum of x_i y_j' over the pairs (i, j)."""
    return source[pairs[:, 0]].T @ target[pairs[:, 1]]


@partial(jax.jit, static_argnames="name")
def _map_of(name, products, maps):
    """The rotation that is nearest to sum_j M_ij W_j over the spaces j that have maps."""
    ahead = [m @ maps[j] for (i, j), m in products.items() if i == name and j in maps]
    back = [m.T @ maps[i] for (i, j), m in products.items() if j == name and i in maps]
    return polar(sum(ahead + back))


class _Sweeps(NamedTuple):
    """Maps, their objective, its gain by the last sweep, and the number of sweeps."""

    maps: Maps
    objective: Float[Array, ""]
    gain: Float[Array, ""] | float
    count: Int[Array, ""] | int


@partial(jax.jit, static_argnames="reference")
def _synchronised(products, maps, reference) -> Maps:
    def sweep(state):
        maps = state.maps
        for name in maps:
            if name != reference:
                maps = maps | {name: _map_of(name, products, maps)}
        objective = _objective(products, maps)
        return _Sweeps(maps, objective, objective - state.objective, state.count + 1)

    def unfinished(state):
        return (state.count < MAX_SWEEPS) & (state.gain > TOLERANCE * state.objective)

    initial = _Sweeps(maps, _objective(products, maps), jnp.inf, 0)
    return lax.while_loop(unfinished, sweep, initial).maps


def _objective(products, maps) -> Float[Array, ""]:
    return jnp.asarray(sum(jnp.vdot(maps[i], m @ maps[j]) for (i, j), m in products.items()))


def match(spaces: Spaces, maps: Maps) -> dict[Link, Pairs]:
    """The rows of each two spaces that are each other's best partner by CSLS under the maps."""
    rows = {name: apply_map(x, maps[name]) for name, x in spaces.items()}
    return {
        (i, j): csls.dictionary(rows[i], rows[j]).mutual_pairs()
        for i, j in itertools.combinations(rows, 2)
    }


Transform = Callable[[str, str], Float[Array, "d_i d_j"]]  # names of two spaces -> map i -> j


def _maps_alone(spaces: Spaces, pairs: Mapping[Link, Pairs]) -> Transform:
    """Maps that are fitted to the matches of each pair of spaces alone."""
    alone = {(i, j): polar(_product(spaces[i], spaces[j], rows)) for (i, j), rows in pairs.items()}
    return lambda i, j: alone[i, j] if (i, j) in alone else alone[j, i].T


def _through_common(maps: Maps) -> Transform:
    return lambda i, j: maps[i] @ maps[j].T


def _check(
    spaces: Spaces,
    fitted_to: dict[Link, Pairs],
    maps: Maps,
    matches: dict[Link, Pairs],
    reference: str,
) -> Check:
    """Compares the maps and their matches with maps that are fitted to each pair of spaces.

    Args:
      spaces: whitened unit rows.
      fitted_to: the matches to which the maps are fitted.
      maps: of all spaces.
      matches: in common coordinates.
      reference: see `join`.
    """
    rng = np.random.default_rng(0)
    shuffled = {link: rng.permutation(rows) for link, rows in fitted_to.items()}
    half = {link: rows[::2] for link, rows in shuffled.items()}
    of_half = _maps_alone(spaces, half), _through_common(fit(spaces, half, reference))
    links = {}
    for (i, j), rows in shuffled.items():
        x, y = spaces[i][rows[1::2, 0]], spaces[j][rows[1::2, 1]]
        links[i, j] = Error(*(float(_distance(x, y, transform(i, j))) for transform in of_half))
    alone = _maps_alone(spaces, fitted_to)
    alone_matches = {
        (i, j): csls.dictionary(*_in_larger(spaces[i], spaces[j], alone(i, j))).mutual_pairs()
        for i, j in fitted_to
    }
    cycles, lost = {}, {}
    for i, j, k in itertools.combinations(spaces, 3):
        cycles[i, j, k] = Error(
            *(
                float(_distance(spaces[i], spaces[i], to(i, j), to(j, k), to(k, i)))
                for to in (alone, _through_common(maps))
            )
        )
        lost[i, j, k] = Error(*(_lost(pairs, (i, j, k)) for pairs in (alone_matches, matches)))
    return Check(links, cycles, lost)


@jax.jit
def _distance(
    x: Float[Array, "n d"], y: Float[Array, "n e"], *maps: Float[Array, "_ _"]
) -> Float[Array, ""]:
    """1 - mean cosine of the rows of x, mapped by all maps in turn, and the unit rows of y."""
    mapped = reduce(jnp.matmul, maps, x)
    return 1 - jnp.sum(unit(mapped) * y, axis=1).mean()


def _in_larger(x, y, matrix):
    """Unit rows of both spaces in the coordinates of the one that has more dimensions."""
    if x.shape[1] <= y.shape[1]:
        return apply_map(x, matrix), y
    return x, apply_map(y, matrix.T)


def _lost(pairs: Mapping[Link, Pairs], cycle: Cycle) -> float:
    """The fraction of matches along a cycle that do not return; NaN if there are none."""
    i, j, k = cycle
    to_j, to_k, back = (dict(pairs[link].tolist()) for link in ((i, j), (j, k), (i, k)))
    through = [(row, to_k[middle]) for row, middle in to_j.items() if middle in to_k]
    ends = [back[row] == end for row, end in through if row in back]
    return 1 - float(np.mean(ends)) if ends else float("nan")
