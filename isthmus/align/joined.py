"""Several spaces in common coordinates, each of which has been aligned with the same target."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Float

from common import likeness
from common.alignment import Aligner
from common.arrays import AnyArray
from isthmus.align import LEARNING_ROWS, Alignment, generalised_procrustes, scaled
from isthmus.align.generalised_procrustes import CommonCoordinates


class Joined(NamedTuple):
    """Several spaces in common coordinates.

    Attributes:
      aligners: of every space into the common coordinates; the last one is the target's.
      coordinates: the maps, all matches, and their errors.
    """

    aligners: dict[str, Aligner]
    coordinates: CommonCoordinates


def join(
    sources: Mapping[str, Float[AnyArray, "n d_source"]],
    target: Float[AnyArray, "m d_target"],
    alignments: Mapping[str, Alignment],
    rows: int = LEARNING_ROWS,
) -> Joined:
    """Maps several sources and their target into common coordinates that all maps agree on.

    Vectors of any two spaces, mapped by their aligners, are compared by cosines. See
    `generalised_procrustes.join`.

    Args:
      sources: name -> raw vectors, two or more, as they were given to `discover`.
      target: raw vectors that all sources were aligned with.
      alignments: name -> result of `discover`, which has not failed.
      rows: number of most frequent rows of each space that are used.
    """
    aligners = {name: alignments[name].aligner for name in sources}
    spaces = {name: aligners[name].normalise_source(x[:rows]) for name, x in sources.items()}
    last = next(iter(aligners.values()))
    spaces[last.target] = last.normalise_target(target[:rows])
    aligners[last.target] = dataclasses.replace(
        last,
        source=last.target,
        source_means=last.target_means,
        profile=likeness.profile(spaces[last.target]),
    )
    anchors = {(name, last.target): alignments[name].anchors for name in sources}
    frequent = {link: pairs[(pairs < rows).all(axis=1)] for link, pairs in anchors.items()}
    coordinates = generalised_procrustes.join(spaces, frequent, last.target)
    for name, matrix in coordinates.maps.items():
        aligners[name] = dataclasses.replace(
            aligners[name],
            matrix=scaled(matrix, spaces[name]),
            target_means=jnp.zeros_like(last.target_means),  # mapped rows are not centred again
            method="synchronised",
            target="common",
        )
    return Joined(aligners, coordinates)
