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

import dataclasses
import itertools
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from common import csls, likeness
from common.alignment import Aligner
from common.arrays import AnyArray
from common.linear import apply_map, polar, whitening
from isthmus.align import LEARNING_ROWS
from isthmus.align.discovery import Alignment, scaled

Link = tuple[str, str]  # names of two spaces
Pairs = Int[np.ndarray, "_ 2"]  # rows of two spaces that are matched
Spaces = Mapping[str, Float[Array, "n d"]]  # name -> unit rows, the most frequent ones first
Maps = dict[str, Float[Array, "_ _"]]  # [d, r], of each space its own d
# Power of the whitening; 0 finds fewer partners between word spaces, .25 and .75 about as many.
POWER = 0.5
MAX_SWEEPS = 200
TOLERANCE = 1e-6  # relative gain of the objective at which the sweeps stop


class CommonCoordinates(NamedTuple):
    """Spaces in common coordinates."""

    maps: Maps  # of unit rows of each space, from the right, up to length
    pairs: dict[Link, Pairs]  # the matches of each pair of spaces in these coordinates


def join(
    sources: Mapping[str, Float[AnyArray, "n d_source"]],
    target: Float[AnyArray, "m d_target"],
    alignments: Mapping[str, Alignment],
    rows: int = LEARNING_ROWS,
) -> tuple[dict[str, Aligner], CommonCoordinates]:
    """Maps two or more sources and their target into common coordinates that all maps agree on.

    Returns the aligners of all spaces, by which vectors of any two are compared by cosines. The
    vectors are raw, as they were given to `discover`, whose results have not failed; the first
    `rows` of each are used.
    """
    aligners = {name: alignments[name].aligner for name in sources}
    spaces = {name: aligners[name].normalise_source(x[:rows]) for name, x in sources.items()}
    last = next(iter(aligners.values()))
    spaces[last.target] = last.normalise_target(target[:rows])
    profile = likeness.profile(spaces[last.target])
    aligners[last.target] = dataclasses.replace(
        last, source=last.target, source_means=last.target_means, profile=profile
    )
    anchors = {(name, last.target): alignments[name].anchors for name in sources}
    frequent = {link: pairs[(pairs < rows).all(axis=1)] for link, pairs in anchors.items()}
    coordinates = in_common(spaces, frequent, last.target)
    for name, matrix in coordinates.maps.items():
        aligners[name] = dataclasses.replace(
            aligners[name],
            matrix=scaled(matrix, spaces[name]),
            target_means=jnp.zeros_like(last.target_means),  # mapped rows are not centred again
            method="synchronised",
            target="common",
        )
    return aligners, coordinates


def in_common(spaces: Spaces, pairs: Mapping[Link, Pairs], reference: str) -> CommonCoordinates:
    """Maps all spaces into the reference's coordinates, and matches each pair of spaces there.

    The maps are fitted to the given matches, which connect all spaces with the reference, and again
    to the matches of all pairs of spaces that these maps give. More such rounds change nothing that
    matters. Directions are lost if the reference has fewer dimensions than others.
    """
    whiten = {name: whitening(x, POWER) for name, x in spaces.items()}
    rows = {name: apply_map(x, whiten[name]) for name, x in spaces.items()}
    fitted_to = match(rows, fit(rows, pairs, reference))
    maps = fit(rows, fitted_to, reference)
    return CommonCoordinates(
        maps={name: whiten[name] @ maps[name] for name in spaces},
        pairs=match(rows, maps),
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
    objective = _objective(products, maps)
    for _ in range(MAX_SWEEPS):
        for name in spaces:
            if name != reference:
                maps[name] = _map_of(name, products, maps)
        before, objective = objective, _objective(products, maps)
        if objective - before <= TOLERANCE * objective:
            break
    return maps


@jax.jit
def _objective(products, maps) -> Float[Array, ""]:
    return jnp.asarray(sum(jnp.vdot(maps[i], m @ maps[j]) for (i, j), m in products.items()))


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


def match(spaces: Spaces, maps: Maps) -> dict[Link, Pairs]:
    """The rows of each two spaces that are each other's best partner by CSLS under the maps."""
    rows = {name: apply_map(x, maps[name]) for name, x in spaces.items()}
    return {
        (i, j): csls.dictionary(rows[i], rows[j]).mutual_pairs()
        for i, j in itertools.combinations(rows, 2)
    }
