"""Finds which rows of two arrays correspond (`discover`), and checks it (`held_out`).

The search (isthmus/search) learns maps into common coordinates on the most frequent rows. From
these follow pairs with a confidence, a dictionary, and an `Aligner` for new vectors.
"""

import math
import tempfile
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from jaxtyping import Array, Float, Int

from common import alignment, csls, likeness
from common.alignment import Aligner
from common.arrays import AnyArray, Unchecked
from common.csls import Dictionary
from common.data.sets.dictionary import one_to_one
from common.errors import UserError, check_count
from common.linear import Maps, apply_maps, unit
from common.metrics import Estimate
from common.parallel import one_blas_thread
from common.run.train import Stages
from common.run.workdir import Workdir
from isthmus.align import LEARNING_ROWS
from isthmus.search import Report, Settings, expected_share, search, self_learning
from isthmus.search import disjoint as disjoint_search
from isthmus.search.self_learning import Data

MIN_ROWS = 20  # fewer rows say too little about a geometry, and give no wrong pairs to compare with
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
      agreement: this and the next ones are those of `search.Report`; of disjoint samples, the share
        of rows that two runs map alike.
      chance_agreement: that of self-learning from wrong pairs; 0 of disjoint samples.
      corrected_agreement: (agreement - chance_agreement) / (1 - chance_agreement).
      probability: of success; NaN of disjoint samples, for which it was not fitted.
      failed: whether the probability is less than one half, or of disjoint samples the agreement
        less than .7; then the result is not to be used.
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

    def __repr__(self) -> str:
        about = f"anchors={len(self.anchors)}, probability={self.probability:.2f}"
        return f"Alignment({about}, failed={self.failed})"

    @property
    def disjoint(self) -> bool:
        """Whether the spaces were taken as samples without common items."""
        return self.initialization == "disjoint"

    @property
    def expected(self) -> Estimate | None:
        """The share of source rows whose best match is right; None: failed, or disjoint samples."""
        if self.failed or self.disjoint:
            return None
        to_target, to_source, _, mutual, _ = self.dictionary
        counts = int(np.sum(mutual)), len(to_target), len(to_source)
        return expected_share(self.corrected_agreement, *counts)

    @property
    def failure(self) -> str:
        """How a failed search is known as one, and what to do."""
        if self.disjoint:
            return (
                f"two runs of self-learning map {self.agreement:.0%} of the rows alike; do not use "
                "these results, give more vectors, known pairs or closer spaces."
            )
        return (
            f"maps fitted to some of its matches find {self.agreement:.0%} of the others, where "
            f"self-learning from wrong pairs has {self.chance_agreement:.0%}; do not use these "
            "results, give known pairs, more of them, or closer spaces. If few items are in both "
            "spaces, such as texts of two languages that are no translations of each other, use "
            "--disjoint (disjoint=True): it needs no common item."
        )

    def relative(
        self, source: Float[AnyArray, "n d"], target: Float[AnyArray, "m e"], count: int = 300
    ) -> tuple[Float[Array, "n k"], Float[Array, "m k"]]:
        """Relative representations (Moschella et al. 2023) of raw vectors of both spaces.

        Unit rows of cosines with the `count` anchors of highest confidence: both spaces are in the
        same k coordinates, without a map.
        """
        rows, partners = self.anchors[:count].T
        x, y = self.aligner.normalise_source(source), self.aligner.normalise_target(target)
        return unit(x @ jnp.take(x, rows, axis=0).T), unit(y @ jnp.take(y, partners, axis=0).T)


def discover(
    source: Float[AnyArray, "n d_source"],
    target: Float[AnyArray, "m d_target"],
    pairs: Annotated[Unchecked, "s 2"] | None = None,
    *,
    names: tuple[str, str] = ("source", "target"),
    rows: int = LEARNING_ROWS,
    ordered: bool = True,
    disjoint: bool = False,
    random_seed: int = 0,
    workdir: Workdir | None = None,
    settings: Settings | None = None,
    keep_failed: bool = False,
    progress: bool = False,
) -> Alignment:
    """Finds which rows of two spaces correspond, and the map of the source onto the target.

    The aligner's matrix is W = maps[0] maps[1]' up to scale, so that the inner products x W y' are
    those in common coordinates. `alignment.fit(..., pairs=result.anchors)` fits other maps.

    Args:
      source: raw vectors of the space that is mapped, the most frequent rows first if an order by
        frequency is known.
      target: raw vectors of the space that it is mapped onto, likewise.
      pairs: known pairs (source row, target row); None or empty: the two geometries alone are used.
        Of several pairs of a row, as in a dictionary, the first is used, see `one_to_one`.
      names: of the spaces, for messages and the aligner.
      rows: number of most frequent rows of each space that the maps are learned on; the dictionary
        is of all rows.
      ordered: whether rows are in order of frequency, so that the partners of the first rows are
        probably among the first. If not (sentences, images), all `rows`, at most 20,000, are used
        from the first stage on.
      disjoint: whether the spaces have no items in common but the pairs, such as texts of one kind
        in two languages, of which none is a translation of another; some thousand rows are needed.
      random_seed: used by random initializations.
      workdir: a folder in which a killed run resumes; None: a temporary one.
      settings: of the search; None: `SETTINGS`.
      keep_failed: whether there are anchors of a search that has failed, which are not to be used.
      progress: whether to show progress bars.
    """
    check_count("rows", rows)
    check_count("random_seed", random_seed, least=0)
    spaces, known = normalise(source, target, pairs, names)
    values = rows, ordered, disjoint, random_seed, progress
    learned, found = _learn_maps(spaces, known, *values, workdir=workdir, settings=settings)
    maps = Maps(*map(jnp.asarray, learned))
    dictionary = csls.dictionary(*apply_maps((spaces.source, spaces.target), maps), frequent=rows)
    matched = dictionary.mutual_pairs()
    sure = np.asarray(dictionary.confidence)[matched[:, 0]]
    order = np.argsort(-sure, kind="stable")
    used = one_to_one(known)
    rejected = self_learning.rejected_pairs(dictionary, *known[used].T)
    learned_on = spaces.source[:rows]
    matrix = scaled(maps.source @ maps.target.T, learned_on)
    result = Alignment(
        aligner=spaces.aligner(matrix, "bootstrap", likeness.profile(learned_on)),
        anchors=matched[order],
        confidence=sure[order],
        dictionary=dictionary,
        maps=maps,
        rejected_pairs=used[rejected].tolist(),
        **found._asdict(),
    )
    if result.failed and not keep_failed:
        logging.warning("The search has failed: %s", result.failure)
        result = result._replace(anchors=matched[:0], confidence=sure[:0])
    return result


@jax.jit
def scaled(matrix: Float[Array, "d e"], rows: Float[Array, "n d"]) -> Float[Array, "d e"]:
    """The matrix, scaled so that the mean length of mapped rows is 1, which changes no cosine."""
    return matrix / jnp.linalg.norm(rows @ matrix, axis=1).mean()


class HeldOut(NamedTuple):
    """What maps say of each source row in known pairs that they were not given, in their order."""

    ranks: Int[np.ndarray, " q"]  # of the first right target row, from 0, at most MAX_RANK
    confidence: Float[np.ndarray, " q"]  # of the first row, see `csls.dictionary`


def held_out(
    source: Float[AnyArray, "n d_source"],
    target: Float[AnyArray, "m d_target"],
    pairs: Annotated[Unchecked, "s 2"],
    *,
    folds: int = 5,
    rows: int = HELD_OUT_ROWS,
    ordered: bool = True,
    disjoint: bool = False,
    random_seed: int = 0,
    progress: bool = False,
) -> HeldOut:
    """Cross-validates the search on the known pairs.

    Each of the `folds` parts of the source rows in pairs is left out once, with all pairs of these
    rows and of their partners. They are then translated among all target rows by CSLS; each of its
    partners is right. The other arguments and the errors are those of `discover`, which by default
    uses more rows and is better than this estimate.
    """
    spaces, known = normalise(source, target, pairs, ("source", "target"))
    words = np.array(list(dict.fromkeys(known[:, 0].tolist())), int)
    folds = min(folds, len(words))
    if folds < 2:
        raise UserError(f"{len(words)} known pairs in {folds} folds: give at least two of each.")
    result = HeldOut(np.zeros(len(words), int), np.zeros(len(words)))
    order = np.random.default_rng(random_seed).permutation(len(words))
    for fold in np.array_split(order, folds):
        left_out = np.isin(known[:, 0], words[fold])
        left_out |= np.isin(known[:, 1], known[left_out, 1])
        values = rows, ordered, disjoint, random_seed, progress
        maps, _ = _learn_maps(spaces, known[~left_out], *values)
        queries, keys = apply_maps((spaces.source, spaces.target), maps)
        hubness = csls.hubness(keys, queries[:rows])
        index = csls.top_k(queries[words[fold]], keys, MAX_RANK, key_hubness=hubness).index
        number = len(keys)  # a pair as one number
        found = words[fold, None] * number + np.asarray(index)
        hit = np.isin(found, known[:, 0] * number + known[:, 1])
        result.ranks[fold] = np.where(hit.any(axis=1), hit.argmax(axis=1), MAX_RANK)
        result.confidence[fold] = csls.confidence(queries, keys, words[fold], index[:, 0])
    return result


def normalise(
    source: Float[AnyArray, "n d_source"],
    target: Float[AnyArray, "m d_target"],
    pairs: Annotated[Unchecked, "s 2"] | None,
    names: tuple[str, str],
) -> tuple[alignment.NormalisedSpaces, Int[np.ndarray, "s 2"]]:
    """Checks and normalises both spaces, and checks the pairs, maybe none or several of a row."""
    given = None if pairs is None or not len(pairs) else pairs
    spaces = alignment.normalised(source, target, given, names, centre_rows=LEARNING_ROWS)
    for name, space in zip(names, (spaces.source, spaces.target), strict=True):
        if len(space) < MIN_ROWS:
            raise UserError(f"Space '{name}' has {len(space)} vectors: give at least {MIN_ROWS}.")
    return spaces, np.zeros((0, 2), int) if given is None else np.asarray(given, np.int64)


def _learn_maps(
    normalised: alignment.NormalisedSpaces,
    pairs: Int[np.ndarray, "s 2"],
    rows: int,
    ordered: bool,
    disjoint: bool,
    random_seed: int,
    progress: bool,
    workdir: Workdir | None = None,
    settings: Settings | None = None,
) -> tuple[Maps, Report]:
    """Maps into common coordinates by the most frequent rows, and what the search says of them."""
    pairs, spaces = pairs[one_to_one(pairs)], (normalised.source, normalised.target)
    frequent = [
        np.union1d(known, np.arange(min(rows, len(x))))
        for known, x in zip(pairs.T, spaces, strict=True)
    ]
    known = [np.searchsorted(x, rows) for x, rows in zip(frequent, pairs.T, strict=True)]
    # Both spaces may list the same items in the same order, which must not help.
    order = np.random.default_rng(0).permutation(len(frequent[1]))
    frequent[1], known[1] = frequent[1][order], np.argsort(order)[known[1]]
    source, target = (jnp.take(x, rows, axis=0) for x, rows in zip(spaces, frequent, strict=True))
    values = settings or SETTINGS
    with tempfile.TemporaryDirectory() as folder, one_blas_thread():
        train = Stages(workdir or Workdir(folder, {}), "align", progress)
        data = Data(source, target, known[0], known[1], jax.random.key(random_seed))
        if disjoint:
            maps, agreement, failed = disjoint_search.search(data, values.disjoint, train)
            return maps, Report(agreement, 0.0, agreement, math.nan, failed, "disjoint")
        ranks = (frequent[0], frequent[1]) if ordered else None
        fit, report = search(data, ranks, values, train)
        return fit.maps, report
