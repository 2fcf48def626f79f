r"""Several spaces in common coordinates, by rotations that agree with each other.

Maps that are fitted to each pair of spaces alone contradict each other: i -> j -> k is not i -> k.
Here each space i has one map into the coordinates of the hub, which is one of the spaces. Rows x of
space i are partly whitened, x' = unit(x C_i^(-1/4)) with the second moment C_i, so that minor
directions count, and rotated by W_i. With the matches P_ij of pairs of spaces, the W_i solve the
synchronisation of rotations

  maximise  sum_{i < j} sum_{(a, b) in P_ij} <x'_a W_i, y'_b W_j>,  W_i W_i' = I or W_i' W_i = I

(generalised Procrustes analysis, Gower 1975; with matches of all pairs of languages, Alaux et al.
2019). W of the hub is the identity, which is no restriction. If all others are fixed, the best W_i
is the polar factor of sum_j M_ij W_j, where M_ij sums the outer products of x'_a and y'_b over
P_ij; the W_i are replaced in turn.
"""

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from common.linear import mapped, polar, unit, whitening
from common.retrieval import csls_dictionary

Link = tuple[str, str]  # names of two spaces
Cycle = tuple[str, str, str]
Pairs = Int[np.ndarray, "s 2"]  # rows of two spaces that are matched
Spaces = Mapping[str, Float[Array, "n d"]]  # name -> unit rows, the most frequent ones first
Maps = dict[str, Float[Array, "d r"]]
POWER = (
    0.5  # of the whitening; 0 finds fewer partners between word spaces, .25 and .75 about as many
)
MAX_SWEEPS = 200
TOLERANCE = 1e-6  # relative gain of the objective at which the sweeps stop


class Hub(NamedTuple):
    """Spaces in common coordinates.

    Attributes:
      maps: of unit rows of each space into the hub's coordinates, from the right, up to length.
      pairs: the matches of each pair of spaces in these coordinates.
      check: the errors of these maps, and of maps fitted to each pair of spaces alone.
    """

    maps: Maps
    pairs: dict[Link, Pairs]
    check: "Check"


class Check(NamedTuple):
    """Errors of (maps fitted to one pair of spaces alone, maps of the hub); zero is best.

    Attributes:
      links: 1 - mean cosine of matches of two spaces, of which half are left out of the fit.
      cycles: 1 - mean cosine of a row of the first space with itself after a way through the two
        others and back. Zero for the hub if all spaces have the same number of dimensions.
      returned: the fraction of matches i -> j -> k -> i that do not end at their first row.
    """

    links: dict[Link, tuple[float, float]]
    cycles: dict[Cycle, tuple[float, float]]
    returned: dict[Cycle, tuple[float, float]]


def join(spaces: Spaces, pairs: Mapping[Link, Pairs], hub: str) -> Hub:
    """Maps all spaces into the hub's coordinates, and matches each pair of spaces there.

    The maps are fitted to the given matches, and again to the matches of all pairs of spaces that
    these maps give. More such rounds change nothing that matters.

    Args:
      spaces: two or more.
      pairs: matches of pairs of spaces, which connect all of them with the hub.
      hub: name of one of the spaces. Directions are lost if it has fewer dimensions than others.
    """
    whiten = {name: whitening(x, POWER) for name, x in spaces.items()}
    rows = {name: mapped(x, whiten[name]) for name, x in spaces.items()}
    pairs = match(rows, fit(rows, pairs, hub))
    maps = fit(rows, pairs, hub)
    found = match(rows, maps)
    return Hub(
        maps={name: whiten[name] @ maps[name] for name in spaces},
        pairs=found,
        check=_check(rows, pairs, maps, found, hub),
    )


def fit(spaces: Spaces, pairs: Mapping[Link, Pairs], hub: str) -> Maps:
    """The rotations that fit given matches best; `pairs` connect all spaces with the hub."""
    products = {
        (i, j): spaces[i][rows[:, 0]].T @ spaces[j][rows[:, 1]] for (i, j), rows in pairs.items()
    }
    maps = {hub: jnp.eye(spaces[hub].shape[1])}
    while len(maps) < len(spaces):  # in the order of the number of matches with those mapped before
        reached = [link for link in pairs if (link[0] in maps) != (link[1] in maps)]
        link = max(reached, key=lambda link: len(pairs[link]))
        name = link[0] if link[1] in maps else link[1]
        maps[name] = polar(_pull(name, products, maps))
    return _synchronised(products, maps, hub)


def _pull(name, products, maps):
    """sum_j M_ij W_j over the spaces j that have maps."""
    ahead = [m @ maps[j] for (i, j), m in products.items() if i == name and j in maps]
    back = [m.T @ maps[i] for (i, j), m in products.items() if j == name and i in maps]
    return sum(ahead + back)


@partial(jax.jit, static_argnames="hub")
def _synchronised(products, maps, hub):
    def objective(maps):
        return sum(jnp.vdot(maps[i], m @ maps[j]) for (i, j), m in products.items())

    def sweep(state):
        maps, value, _, count = state
        for name in maps:
            if name != hub:
                maps = maps | {name: polar(_pull(name, products, maps))}
        new = objective(maps)
        return maps, new, new - value, count + 1

    def unfinished(state):
        _, value, gain, count = state
        return (count < MAX_SWEEPS) & (gain > TOLERANCE * value)

    return lax.while_loop(unfinished, sweep, (maps, objective(maps), jnp.inf, 0))[0]


def match(spaces: Spaces, maps: Maps) -> dict[Link, Pairs]:
    """The rows of each two spaces that are each other's best partner by CSLS under the maps."""
    rows = {name: mapped(x, maps[name]) for name, x in spaces.items()}
    return {(i, j): _mutual(rows[i], rows[j]) for i, j in itertools.combinations(rows, 2)}


def _mutual(x: Float[Array, "n r"], y: Float[Array, "m r"]) -> Pairs:
    found = csls_dictionary(x, y)
    picked = np.flatnonzero(found.mutual)
    return np.stack([picked, np.asarray(found.to_target)[picked]], axis=1)


def _check(
    spaces: Spaces, pairs: dict[Link, Pairs], maps: Maps, found: dict[Link, Pairs], hub: str
) -> Check:
    """Compares the maps, fitted to `pairs`, and their matches `found` with maps of each pair."""

    def own(pairs: dict[Link, Pairs]) -> Callable[[str, str], Float[Array, "d_i d_j"]]:
        """Maps i -> j that are fitted to the matches of each pair of spaces alone."""
        alone = {
            (i, j): polar(spaces[i][rows[:, 0]].T @ spaces[j][rows[:, 1]])
            for (i, j), rows in pairs.items()
        }
        return lambda i, j: alone[i, j] if (i, j) in alone else alone[j, i].T

    def joint(maps: Maps) -> Callable[[str, str], Float[Array, "d_i d_j"]]:
        return lambda i, j: maps[i] @ maps[j].T

    rng = np.random.default_rng(0)
    mixed = {link: rng.permutation(rows) for link, rows in pairs.items()}
    fitted = {link: rows[::2] for link, rows in mixed.items()}
    halves = own(fitted), joint(fit(spaces, fitted, hub))
    links = {}
    for (i, j), rows in mixed.items():
        x, y = spaces[i][rows[1::2, 0]], spaces[j][rows[1::2, 1]]
        links[i, j] = tuple(_error(x @ transform(i, j), y) for transform in halves)
    alone = own(pairs)
    own_found = {(i, j): _mutual(*_in_larger(spaces[i], spaces[j], alone(i, j))) for i, j in pairs}
    cycles, returned = {}, {}
    for i, j, k in itertools.combinations(spaces, 3):
        cycles[i, j, k] = tuple(
            _error(spaces[i] @ to(i, j) @ to(j, k) @ to(k, i), spaces[i])
            for to in (alone, joint(maps))
        )
        returned[i, j, k] = tuple(_lost(each, (i, j, k)) for each in (own_found, found))
    return Check(links, cycles, returned)


def _error(x: Float[Array, "n d"], y: Float[Array, "n d"]) -> float:
    """1 - mean cosine of the rows of x and the unit rows of y."""
    return 1 - float(jnp.sum(unit(x) * y, axis=1).mean())


def _in_larger(x, y, transform):
    """Unit rows of both spaces in the coordinates of the one that has more dimensions."""
    if x.shape[1] <= y.shape[1]:
        return mapped(x, transform), y
    return x, mapped(y, transform.T)


def _lost(pairs: Mapping[Link, Pairs], cycle: Cycle) -> float:
    """The fraction of matches along a cycle that do not return; NaN if there are none."""
    i, j, k = cycle
    to_j, to_k, back = (dict(pairs[link].tolist()) for link in ((i, j), (j, k), (i, k)))
    through = [(row, to_k[middle]) for row, middle in to_j.items() if middle in to_k]
    ends = [back[row] == end for row, end in through if row in back]
    return 1 - float(np.mean(ends)) if ends else float("nan")
