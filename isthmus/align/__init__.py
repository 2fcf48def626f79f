"""Finds which rows of two arrays correspond (`discover`), and checks it (`held_out`).

The arrays may differ in dimension and in number of rows: words, sentences, images, sounds, with a
few known pairs or none. The search (isthmus/search) learns maps into common coordinates
on the most frequent rows. From these follow pairs with a confidence, a dictionary, and an `Aligner`
for new vectors. `joined.join` maps several arrays, each of which corresponds to one of them, into
common coordinates.
"""

import tempfile
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from common import alignment, csls, likeness
from common.alignment import Aligner
from common.arrays import AnyArray, Unchecked
from common.csls import Dictionary
from common.data.sets.dictionary import one_to_one
from common.errors import UserError
from common.linear import Maps, apply_maps, unit
from common.parallel import one_blas_thread
from common.run.train import Stages
from common.run.workdir import Workdir
from isthmus.search import Found, Settings, search, self_learning

MIN_ROWS = 20  # fewer rows say too little about a geometry, and give no wrong pairs to compare with
LEARNING_ROWS = 20_000  # most frequent ones
MAX_RANK = 10
HELD_OUT_ROWS = 4_000  # the rows that the first stage of the search takes in any case
SETTINGS = Settings()


class Alignment(NamedTuple):
    """The correspondence of two spaces.

    Attributes:
      aligner: maps new raw vectors of the source into the normalised coordinates of the target.
      anchors: (source row, target row) of the mutual pairs, in descending order of confidence.
      confidence: of each of these pairs, from 0 to 1, see `csls.dictionary`.
      dictionary: the best target row of every source row, and the reverse.
      maps: normalised source and target into common coordinates, up to length.
      agreement: fraction of matches that maps fitted to other matches find again, see
        `search`.
      chance_agreement: that of self-learning from wrong pairs.
      corrected_agreement: (agreement - chance_agreement) / (1 - chance_agreement).
      probability: that the map finds at least half of the items that a map fitted to all true pairs
        would find, by a logistic regression on the corrected agreement between other spaces.
      failed: whether that is less than one half; then the result is not to be used.
      initialization: name of the one that was best.
      rejected_pairs: indices of the known pairs that were used, of which neither row is the other's
        best partner.
    """

    aligner: Aligner
    anchors: Int[np.ndarray, "k 2"]
    confidence: Float[np.ndarray, " k"]
    dictionary: Dictionary
    maps: Maps
    agreement: float
    chance_agreement: float
    corrected_agreement: float
    probability: float
    failed: bool
    initialization: str
    rejected_pairs: list[int]

    def relative(
        self, source: Float[AnyArray, "n d"], target: Float[AnyArray, "m e"], count: int = 300
    ) -> tuple[Float[Array, "n k"], Float[Array, "m k"]]:
        """Relative representations (Moschella et al. 2023) of raw vectors of both spaces.

        Unit rows of cosines with the `count` anchors of highest confidence: both spaces are in the
        same k coordinates, without a map.
        """
        anchors = self.anchors[:count].T
        spaces = self.aligner.normalise_source(source), self.aligner.normalise_target(target)
        relative = [
            unit(x @ jnp.take(x, rows, axis=0).T) for x, rows in zip(spaces, anchors, strict=True)
        ]
        return relative[0], relative[1]


def discover(
    source: Float[AnyArray, "n d_source"],
    target: Float[AnyArray, "m d_target"],
    pairs: Annotated[Unchecked, "s 2"] | None = None,
    *,
    names: tuple[str, str] = ("source", "target"),
    rows: int = LEARNING_ROWS,
    ordered: bool = True,
    random_seed: int = 0,
    workdir: Workdir | None = None,
    settings: Settings | None = None,
    progress: bool = False,
) -> Alignment:
    """Finds which rows of two spaces correspond, and the map of the source onto the target.

    The aligner's matrix is W = maps[0] maps[1]' up to scale, so that the inner products x W y' are
    those in common coordinates. `alignment.fit(..., pairs=result.anchors)` fits other maps.

    Args:
      source: raw vectors of the space that is mapped, the most frequent rows first if an order by
        frequency is known.
      target: raw vectors of the space that it is mapped onto, likewise.
      pairs: known pairs (source row, target row); None or empty: the two geometries
        alone are used. A row may be in several, as in a dictionary with several translations of a
        word: of these the first is used, see `one_to_one`.
      names: of the spaces, for messages and the aligner.
      rows: number of most frequent rows of each space that the maps are learned on; the dictionary
        is of all rows.
      ordered: whether rows are in order of frequency, so that the partners of the first rows are
        probably among the first. If not (sentences, images), the bootstrap uses all `rows`, at
        most 20,000, from its first stage on.
      random_seed: used by random initializations.
      workdir: a folder in which a killed run resumes; None: a temporary one.
      settings: of the search; None: `SETTINGS`.
      progress: whether to show progress bars.

    Raises:
      UserError: vectors or pairs that `common.alignment.fit` refuses, or a space of fewer than
        MIN_ROWS rows.
    """
    inputs = normalise(source, target, pairs, names)
    spaces = inputs.spaces
    learned = _learn_maps(
        inputs,
        rows=rows,
        ordered=ordered,
        random_seed=random_seed,
        progress=progress,
        workdir=workdir,
        settings=settings,
    )
    maps = Maps(*map(jnp.asarray, learned.maps))
    dictionary = csls.dictionary(*apply_maps((spaces.source, spaces.target), maps), frequent=rows)
    matched = dictionary.mutual_pairs()
    sure = np.asarray(dictionary.confidence)[matched[:, 0]]
    order = np.argsort(-sure, kind="stable")
    used = one_to_one(inputs.pairs)
    rejected = self_learning.rejected_pairs(dictionary, *inputs.pairs[used].T)
    learned_on = spaces.source[:rows]
    matrix = scaled(maps.source @ maps.target.T, learned_on)
    return Alignment(
        aligner=spaces.aligner(matrix, "bootstrap", likeness.profile(learned_on)),
        anchors=matched[order],
        confidence=sure[order],
        dictionary=dictionary,
        maps=maps,
        rejected_pairs=used[rejected].tolist(),
        **learned.report._asdict(),
    )


@jax.jit
def scaled(matrix: Float[Array, "d e"], rows: Float[Array, "n d"]) -> Float[Array, "d e"]:
    """The matrix of a map, scaled so that the mean length of mapped rows is 1.

    The scale changes no cosine.
    """
    return matrix / jnp.linalg.norm(rows @ matrix, axis=1).mean()


class HeldOut(NamedTuple):
    """What maps say about known pairs that they were not given.

    There is a number for each source row that is in a pair, in the order of its first pair.

    Attributes:
      ranks: of the first right one among the translations of each source row, from 0; MAX_RANK if
        none is among the first MAX_RANK. Right is every target row that it is paired with.
      confidence: of the first translation of each source row, see `csls.dictionary`.
    """

    ranks: Int[np.ndarray, " q"]
    confidence: Float[np.ndarray, " q"]


def held_out(
    source: Float[AnyArray, "n d_source"],
    target: Float[AnyArray, "m d_target"],
    pairs: Annotated[Unchecked, "s 2"],
    *,
    folds: int = 5,
    rows: int = HELD_OUT_ROWS,
    ordered: bool = True,
    random_seed: int = 0,
    progress: bool = False,
) -> HeldOut:
    """Cross-validates the bootstrap on the known pairs.

    Each of the `folds` parts of the source rows in pairs is left out once (a fold holds at least
    one row), with all pairs of these rows and of their partners. These source rows are then
    translated among all target rows by CSLS. The other arguments are those of `discover`, which by
    default uses more rows and is better than this estimate.

    Raises:
      UserError: as in `discover`, or fewer than two folds or source rows.
    """
    inputs = normalise(source, target, pairs, ("source", "target"))
    known = inputs.pairs.astype(np.int64)
    words = np.array(list(dict.fromkeys(known[:, 0].tolist())), int)
    folds = min(folds, len(words))
    if folds < 2:
        raise UserError(f"{len(words)} known pairs in {folds} folds: give at least two of each.")
    result = HeldOut(np.zeros(len(words), int), np.zeros(len(words)))
    order = np.random.default_rng(random_seed).permutation(len(words))
    for fold in np.array_split(order, folds):
        left_out = np.isin(known[:, 0], words[fold])
        left_out |= np.isin(known[:, 1], known[left_out, 1])
        learned = _learn_maps(
            inputs._replace(pairs=known[~left_out]),
            rows=rows,
            ordered=ordered,
            random_seed=random_seed,
            progress=progress,
        )
        spaces = inputs.spaces
        queries, keys = apply_maps((spaces.source, spaces.target), learned.maps)
        hubness = csls.hubness(keys, queries[:rows])
        index = csls.top_k(queries[words[fold]], keys, MAX_RANK, key_hubness=hubness).index
        number = len(keys)  # a pair as one number
        found = words[fold, None] * number + np.asarray(index)
        hit = np.isin(found, known[:, 0] * number + known[:, 1])
        result.ranks[fold] = np.where(hit.any(axis=1), hit.argmax(axis=1), MAX_RANK)
        result.confidence[fold] = csls.confidence(queries, keys, words[fold], index[:, 0])
    return result


class Inputs(NamedTuple):
    """Checked and normalised inputs; known pairs, maybe none, and maybe several of a row."""

    spaces: alignment.NormalisedSpaces
    pairs: Int[np.ndarray, "s 2"]


def normalise(
    source: Float[AnyArray, "n d_source"],
    target: Float[AnyArray, "m d_target"],
    pairs: Annotated[Unchecked, "s 2"] | None,
    names: tuple[str, str],
) -> Inputs:
    """Checks and normalises both spaces, see `discover` for the arguments and errors."""
    given = None if pairs is None or not len(pairs) else pairs
    spaces = alignment.normalised(source, target, given, names, centre_rows=LEARNING_ROWS)
    for name, space in zip(names, (spaces.source, spaces.target), strict=True):
        if len(space) < MIN_ROWS:
            raise UserError(f"Space '{name}' has {len(space)} vectors: give at least {MIN_ROWS}.")
    return Inputs(spaces, np.zeros((0, 2), int) if given is None else np.asarray(given))


def _learn_maps(
    inputs: Inputs,
    *,
    rows: int,
    ordered: bool,
    random_seed: int,
    progress: bool,
    workdir: Workdir | None = None,
    settings: Settings | None = None,
) -> Found:
    """The search on the most frequent rows; the arguments are those of `discover`."""
    spaces, pairs = inputs.spaces, inputs.pairs[one_to_one(inputs.pairs)]
    source_rows, target_rows = (
        np.union1d(known, np.arange(min(rows, len(x))))
        for known, x in zip(pairs.T, (spaces.source, spaces.target), strict=True)
    )
    # Both spaces may list the same items in the same order, which must not help.
    target_rows = np.random.default_rng(0).permutation(target_rows)
    with tempfile.TemporaryDirectory() as folder, one_blas_thread():
        return search(
            jnp.take(spaces.source, source_rows, axis=0),
            jnp.take(spaces.target, target_rows, axis=0),
            pairs=(_places(pairs[:, 0], source_rows), _places(pairs[:, 1], target_rows)),
            ranks=(source_rows, target_rows) if ordered else None,
            settings=settings or SETTINGS,
            train=Stages(workdir or Workdir(folder, {}), "align", progress),
            random_seed=random_seed,
        )


def _places(rows: Int[np.ndarray, " s"], among: Int[np.ndarray, " n"]) -> Int[np.ndarray, " s"]:
    """The place of each row in a list of distinct rows in any order."""
    order = np.argsort(among)
    return order[np.searchsorted(among, rows, sorter=order)]
