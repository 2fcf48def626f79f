"""Finds which rows of two arrays correspond (`discover`), and checks it (`held_out`).

The arrays may differ in dimension and in number of rows: words, sentences, images, sounds, with a
few known pairs or none. The search of search.py runs on the most frequent rows and gives maps into
common coordinates. From these follow pairs with a confidence, a dictionary, and an `Aligner` for
new vectors. `join` maps several arrays, each of which corresponds to one of them, into common
coordinates.
"""

import dataclasses
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from anchor_opt import methods
from anchor_opt.methods import hub, search
from anchor_opt.problem import Problem, Run
from anchor_opt.relative import unit_relative
from common import alignment, remapping
from common.alignment import Aligner
from common.errors import UserError
from common.linear import both_mapped
from common.retrieval import Dictionary, confidence, csls_dictionary, csls_top_k, mean_top_k
from common.run.workdir import Workdir

MIN_ROWS = 20  # fewer rows say too little about a geometry, and give no wrong pairs to compare with
SEARCH_ROWS = 20_000
MAX_RANK = 10
HELD_OUT_ROWS = 4_000  # the rows that the first stage of the search takes in any case
SETTINGS = methods.Settings()


class Alignment(NamedTuple):
    """The correspondence of two spaces.

    Attributes:
      aligner: maps new raw vectors of the source into the normalised coordinates of the target.
      anchors: (source row, target row) of the mutual pairs, in descending order of confidence.
      confidence: of each of these pairs, from 0 to 1, see `csls_dictionary`.
      dictionary: the best target row of every source row, and the reverse.
      maps: normalised source and target into common coordinates, up to length.
      agreement: fraction of matches that maps fitted to other matches find again, see
        `search.converge`.
      null_agreement: the agreement of a search from wrong pairs.
      gain: (agreement - null_agreement) / (1 - null_agreement).
      probability: that the map finds at least half of the items that a map fitted to all true pairs
        would find, by a logistic regression on the gain of searches between other spaces.
      failed: whether that is less than one half; then the result is not to be used.
      start: name of the starting point of the search that was best.
      rejected_pairs: indices of the known pairs of which neither row is the other's best partner.
    """

    aligner: Aligner
    anchors: Int[np.ndarray, "k 2"]
    confidence: Float[np.ndarray, " k"]
    dictionary: Dictionary
    maps: tuple[Float[Array, "d_source r"], Float[Array, "d_target r"]]
    agreement: float
    null_agreement: float
    gain: float
    probability: float
    failed: bool
    start: str
    rejected_pairs: list[int]

    def relative(
        self, source: Float[ArrayLike, "n d"], target: Float[ArrayLike, "m e"], count: int = 300
    ) -> tuple[Float[Array, "n k"], Float[Array, "m k"]]:
        """Relative representations (Moschella et al. 2023) of raw vectors of both spaces.

        Unit rows of cosines with the `count` anchors of highest confidence: both spaces are in the
        same k coordinates, without a map.
        """
        anchors = self.anchors[:count].T
        spaces = self.aligner.normalise_source(source), self.aligner.normalise_target(target)
        return tuple(
            unit_relative(x, jnp.take(x, rows, axis=0))
            for x, rows in zip(spaces, anchors, strict=True)
        )


class ChangedModel(NamedTuple):
    """A store mapped into a new model's space, see `common.remapping`.

    Attributes:
      choice: the map and its comparison with others.
      kept: estimates of what the mapped store keeps of the retrieval.
      curve: number of pairs -> recall of the ten nearest rows with so many.
      num_known: number of known pairs that the map is fitted to; 0 if these are found pairs.
    """

    choice: remapping.Choice
    kept: dict[str, remapping.Estimate]
    curve: dict[int, remapping.Estimate]
    num_known: int


def change_model(
    source: Float[ArrayLike, "n d_source"],
    target: Float[ArrayLike, "m d_target"],
    pairs: Int[ArrayLike, "s 2"] | None,
    found: Alignment,
) -> ChangedModel:
    """Chooses the map of a store (the source) into a new model's space, and says what it keeps.

    It is fitted to the mutual pairs of `found`, which `discover` returns for the same arguments, or
    to the known pairs if these are more, or many and the search has failed.

    Raises:
      UserError: fewer than ten pairs.
    """
    num_known = 0 if pairs is None else len(pairs)
    few = remapping.MANY_PAIRS if found.failed else len(found.anchors)
    num_known = num_known if num_known >= few else 0
    rows = np.asarray(pairs) if num_known else found.anchors
    given = found.aligner, np.asarray(source)[rows[:, 0]], np.asarray(target)[rows[:, 1]]
    choice = remapping.choose(*given)
    kept = remapping.estimated(choice.mapped, choice.embedded, len(source))
    return ChangedModel(choice, kept, remapping.curve(*given, len(source)), num_known)


def discover(
    source: Float[ArrayLike, "n d_source"],
    target: Float[ArrayLike, "m d_target"],
    pairs: Int[ArrayLike, "s 2"] | None = None,
    *,
    names: tuple[str, str] = ("source", "target"),
    rows: int = SEARCH_ROWS,
    ordered: bool = True,
    random_seed: int = 0,
    workdir: Workdir | None = None,
    settings: methods.Settings | None = None,
    progress: bool = False,
) -> Alignment:
    """Finds which rows of two spaces correspond, and the map of the source onto the target.

    The aligner's matrix is W = maps[0] maps[1]' up to scale, so that the inner products x W y' are
    those in common coordinates. `alignment.fit(..., pairs=found.anchors)` fits other maps.

    Args:
      source: raw vectors of the space that is mapped, the most frequent rows first if an order by
        frequency is known.
      target: raw vectors of the space that it is mapped onto, likewise.
      pairs: known pairs (source row, target row); None or empty: the search starts from the two
        geometries alone.
      names: of the spaces, for messages and the aligner.
      rows: number of most frequent rows of each space that the search uses; the dictionary is of
        all rows.
      ordered: whether rows are in order of frequency, so that the partners of the first rows are
        probably among the first. If not (sentences, images), the search uses all `rows`, at most
        20,000, from its first stage on.
      random_seed: used by random starting points.
      workdir: a folder in which a killed search resumes; None: a temporary one.
      settings: of the search; None: `SETTINGS`.
      progress: whether to show progress bars.

    Raises:
      UserError: vectors or pairs that `common.alignment.fit` refuses, a space of fewer than
        MIN_ROWS rows, or a row in two pairs.
    """
    aligner, x, y, pairs = normalise(source, target, pairs, names)
    given = pairs, rows, ordered, random_seed, progress
    maps, notes = _search(x, y, *given, workdir, settings)
    found = csls_dictionary(*both_mapped((x, y), maps), frequent=rows)
    picked = np.flatnonzero(found.mutual)
    picked = picked[np.argsort(-np.asarray(found.confidence)[picked], kind="stable")]
    anchors = np.stack([picked, np.asarray(found.to_target)[picked]], axis=1)
    matrix = _scaled(maps[0] @ maps[1].T, x[:rows])
    return Alignment(
        aligner=dataclasses.replace(aligner, matrix=matrix, method="bootstrap"),
        anchors=anchors,
        confidence=np.asarray(found.confidence)[picked],
        dictionary=found,
        maps=maps,
        rejected_pairs=search.rejected_pairs(found, *pairs.T),
        **notes,
    )


@jax.jit
def _scaled(matrix: Float[Array, "d e"], rows: Float[Array, "n d"]) -> Float[Array, "d e"]:
    """The matrix of a map, scaled so that the mean length of mapped rows is 1.

    The scale changes no cosine.
    """
    return matrix / jnp.linalg.norm(rows @ matrix, axis=1).mean()


def join(
    sources: Mapping[str, Float[ArrayLike, "n d_source"]],
    target: Float[ArrayLike, "m d_target"],
    found: Mapping[str, Alignment],
    rows: int = SEARCH_ROWS,
) -> tuple[dict[str, Aligner], hub.Hub]:
    """Maps several sources and their target into common coordinates that all maps agree on.

    Vectors of any two spaces, mapped by their aligners, are compared by cosines. See `hub.join`.

    Args:
      sources: name -> raw vectors, two or more, as they were given to `discover`.
      target: raw vectors that all sources were aligned with.
      found: name -> result of `discover`, which has not failed.
      rows: number of most frequent rows of each space that are used.

    Returns:
      The aligner of every space, of which the last one is the target's, and all matches.
    """
    aligners = {name: found[name].aligner for name in sources}
    spaces = {name: aligners[name].normalise_source(x[:rows]) for name, x in sources.items()}
    last = next(iter(aligners.values()))
    spaces[last.target] = last.normalise_target(target[:rows])
    aligners[last.target] = dataclasses.replace(
        last, source=last.target, source_means=last.target_means
    )
    anchors = {(name, last.target): found[name].anchors for name in sources}
    few = {link: pairs[(pairs < rows).all(axis=1)] for link, pairs in anchors.items()}
    result = hub.join(spaces, few, last.target)
    for name, matrix in result.maps.items():
        aligners[name] = dataclasses.replace(
            aligners[name],
            matrix=_scaled(matrix, spaces[name]),
            target_means=jnp.zeros_like(last.target_means),  # mapped rows are not centred again
            method="synchronised",
            target="hub",
        )
    return aligners, result


class HeldOut(NamedTuple):
    """What the search says about known pairs that it was not given, in the order of the pairs.

    Attributes:
      ranks: of each pair's target row among the translations of its source row, from 0; MAX_RANK if
        it is not among the first MAX_RANK.
      confidence: of the first translation of each source row, see `csls_dictionary`.
    """

    ranks: Int[np.ndarray, " s"]
    confidence: Float[np.ndarray, " s"]


def held_out(
    source: Float[ArrayLike, "n d_source"],
    target: Float[ArrayLike, "m d_target"],
    pairs: Int[ArrayLike, "s 2"],
    *,
    folds: int = 5,
    rows: int = HELD_OUT_ROWS,
    ordered: bool = True,
    random_seed: int = 0,
    progress: bool = False,
) -> HeldOut:
    """Cross-validates the search on the known pairs.

    Each of the `folds` parts of the pairs is left out once (a fold holds at least one pair). The
    source rows of its pairs are then translated among all target rows by CSLS. The other arguments
    are those of `discover`, which by default uses more rows and is better than this estimate.

    Raises:
      UserError: as in `discover`, or fewer than two folds or pairs.
    """
    _, x, y, pairs = normalise(source, target, pairs, ("source", "target"))
    folds = min(folds, len(pairs))
    if folds < 2:
        raise UserError(f"{len(pairs)} known pairs in {folds} folds: give at least two of each.")
    ranks, sure = np.zeros(len(pairs), int), np.zeros(len(pairs))
    order = np.random.default_rng(random_seed).permutation(len(pairs))
    for fold in np.array_split(order, folds):
        rest = np.delete(pairs, fold, axis=0)
        maps, _ = _search(x, y, rest, rows, ordered, random_seed, progress)
        mapped, keys = both_mapped((x, y), maps)
        hubness = mean_top_k(keys, mapped[:rows], min(10, len(mapped), rows))
        index = csls_top_k(mapped[pairs[fold, 0]], keys, MAX_RANK, key_hubness=hubness)[1]
        hit = np.asarray(index) == pairs[fold, 1:]
        ranks[fold] = np.where(hit.any(axis=1), hit.argmax(axis=1), MAX_RANK)
        sure[fold] = confidence(mapped, keys, pairs[fold, 0], index[:, 0])
    return HeldOut(ranks, sure)


def normalise(
    source, target, pairs, names: tuple[str, str]
) -> tuple[Aligner, Float[Array, "n d_source"], Float[Array, "m d_target"], Int[np.ndarray, "s 2"]]:
    """Checks and normalises both spaces, see `discover` for the arguments and errors.

    Returns:
      An aligner whose matrix is still to be computed, both spaces normalised by it, and the pairs.
    """
    pairs = np.zeros((0, 2), int) if pairs is None or not len(pairs) else np.asarray(pairs)
    aligner = alignment.fit(
        "procrustes",
        source,
        target,
        pairs=pairs if len(pairs) else [[0, 0]],  # only the fitted means are used
        names=names,
        centre_rows=SEARCH_ROWS,
    )
    x, y = aligner.normalise_source(source), aligner.normalise_target(target)
    for name, space, rows in zip(names, (x, y), pairs.T, strict=True):
        if len(space) < MIN_ROWS:
            raise UserError(f"Space '{name}' has {len(space)} vectors: give at least {MIN_ROWS}.")
        unique, counts = np.unique(rows, return_counts=True)
        for row in unique[counts > 1]:
            raise UserError(f"Row {row} of the space '{name}' is in several known pairs: keep one.")
    return aligner, x, y, pairs


def _search(x, y, pairs, rows, ordered, random_seed, progress, workdir=None, settings=None):
    """Maps of source x and target y into common coordinates, and the notes of the search."""
    used = [np.union1d(pairs[:, i], np.arange(min(rows, len(z)))) for i, z in enumerate((x, y))]
    # Both spaces may list the same items in the same order, which must not help.
    used[0] = np.random.default_rng(0).permutation(used[0])
    source_pairs, target_pairs = (
        np.argsort(rows)[np.searchsorted(np.sort(rows), known)]
        for rows, known in zip(used, pairs.T, strict=True)
    )
    # In a `Problem` the anchors of its source are given and those of its target are sought. Here
    # the roles are exchanged: the rows of y in known pairs are the given anchors, and the anchors
    # parallel to them are sought in x, which is mapped onto y.
    problem = Problem(
        source=jnp.take(y, used[1], axis=0),
        target=jnp.take(x, used[0], axis=0),
        anchors=target_pairs,
        target_pairs=source_pairs,
        ranks=(used[1], used[0]) if ordered else None,
    )
    with tempfile.TemporaryDirectory() as folder:
        work = workdir or Workdir(folder, {})
        values = settings or SETTINGS
        run = Run(values, work, "align", random_seed, progress)
        converged = search.converge(problem, run)
    y_map, x_map = map(jnp.asarray, converged.maps)
    return (x_map, y_map), converged.notes
