"""From your own arrays to their correspondence: `discover`, and how far to trust it: `held_out`.

Arrays of any dimensions and sizes (words, sentences, images, sounds), with a few known pairs or
none. The search is search.py's, on the most frequent rows; here its maps are turned into what one
takes home: pairs with a confidence, a dictionary, and an `Aligner` for vectors still to come.
"""

import dataclasses
import tempfile
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int
from ml_collections import ConfigDict

from anchor_opt import defaults, search
from anchor_opt.induce import Dictionary, induce
from anchor_opt.problem import Problem, Run
from anchor_opt.relative import unit, unit_relative
from common import alignment
from common.alignment import METHODS, Aligner
from common.errors import UserError
from common.retrieval import csls_top_k, mean_top_k
from common.workdir import Workdir

LEAST_ROWS = 20  # of a space: below, there is no geometry to go by, nor wrong pairs to compare with
ROWS = 20_000  # most frequent rows that the search looks at
OWN = "bootstrap"  # the aligner's method that is none of `common.alignment`: the search's own maps
MOST_IN_A_PLAN = 5_000  # rows on either side of a plan, which is held
CHECK_ROWS = 4_000  # in each round of `held_out`: as many as its first stage looks at anyway


class Alignment(NamedTuple):
    """The correspondence of two spaces.

    Attributes:
      aligner: moves new raw vectors of the source into the target's normalised coordinates.
      anchors: (source row, target row) of the pairs that choose each other, the surest first.
      confidence: of each pair, from 0 to 1, see `induce`.
      dictionary: the best target row of every source row.
      maps: normalised source and target into common coordinates, up to length; the dictionary's.
      objective: of the search, mean best CSLS; high if the maps are right.
      chance: the same from pairs that are known to be wrong.
      failed: whether the objective is no better than chance: then nothing here is to be trusted.
      start: what the search was started from.
      disbelieved: numbers of the seed pairs of which neither side chooses the other.
    """

    aligner: Aligner
    anchors: Int[np.ndarray, "k 2"]
    confidence: Float[np.ndarray, " k"]
    dictionary: Dictionary
    maps: tuple[Float[Array, "d_source r"], Float[Array, "d_target r"]]
    objective: float
    chance: float
    failed: bool
    start: str
    disbelieved: list[int]

    def relative(
        self, source: Float[ArrayLike, "n d"], target: Float[ArrayLike, "m e"], count: int = 300
    ) -> tuple[Float[Array, "n k"], Float[Array, "m k"]]:
        """Relative representations of raw vectors of both spaces over the `count` surest anchors.

        Unit rows (Moschella et al. 2023): both spaces in the same k coordinates, without any map.
        """
        rows = self.anchors[:count]
        spaces = self.aligner.normalise_moving(source), self.aligner.normalise_fixed(target)
        return tuple(unit_relative(x, x[rows[:, i]]) for i, x in enumerate(spaces))


def discover(
    source: Float[ArrayLike, "n d_source"],
    target: Float[ArrayLike, "m d_target"],
    seeds: Int[ArrayLike, "s 2"] | None = None,
    *,
    names: tuple[str, str] = ("source", "target"),
    method: str = OWN,
    rows: int = ROWS,
    ordered: bool = True,
    random_seed: int = 0,
    workdir: Workdir | None = None,
    config: ConfigDict | None = None,
) -> Alignment:
    """Finds which rows of two spaces correspond.

    Args:
      source: raw vectors of the space that moves, the most frequent first where an order is known.
      target: those of the space that stays.
      seeds: known pairs (source row, target row); None: from the two geometries alone.
      names: of both spaces, for messages and the aligner.
      method: of the aligner. OWN: source into common coordinates and from there, by the transpose,
        into the target, whose inner products with target rows are then those of the search (but
        for the length of these rows in common coordinates). Or a key of `alignment.METHODS`, fitted
        on the anchors.
      rows: most frequent rows of each space that the search looks at; the dictionary has all.
      ordered: whether the first rows are the most frequent, and so likely to have their partners
        among the first; False (sentences, images): the search begins with all `rows` at once.
      random_seed: of starts that draw.
      workdir: where a killed search goes on from; None: a temporary one.
      config: as `defaults.config()`, the default.

    Raises:
      UserError: vectors or pairs that `common.alignment.fit` refuses, a space of fewer than
        LEAST_ROWS rows, or a row that is in two seeds.
    """
    aligner, x, y, seeds = prepare(source, target, seeds, names, method)
    config = _settled(config, ordered)
    maps, notes = _solve(x, y, seeds, rows, random_seed, workdir, config)
    common = [unit(space @ transform) for space, transform in zip((x, y), maps, strict=True)]
    found = induce(*common, frequent=rows)
    picked = np.flatnonzero(found.mutual)
    picked = picked[np.argsort(-np.asarray(found.confidence)[picked], kind="stable")]
    anchors = np.stack([picked, np.asarray(found.to_target)[picked]], axis=1)
    if method == OWN:
        matrix = maps[0] @ maps[1].T
        # Of no consequence for cosines; lengths about one are what users expect.
        matrix /= jnp.linalg.norm(x[:rows] @ matrix, axis=1).mean()
    else:
        matrix = METHODS[method](x[anchors[:, 0]], y[anchors[:, 1]])
    return Alignment(
        dataclasses.replace(aligner, matrix=matrix, method=method),
        anchors,
        np.asarray(found.confidence)[picked],
        found,
        maps,
        disbelieved=search.disbelieved(found.to_target, found.to_source, *seeds.T),
        **notes,
    )


def held_out(
    source: Float[ArrayLike, "n d_source"],
    target: Float[ArrayLike, "m d_target"],
    seeds: Int[ArrayLike, "s 2"],
    *,
    folds: int = 5,
    rows: int = CHECK_ROWS,
    ordered: bool = True,
    random_seed: int = 0,
    config: ConfigDict | None = None,
) -> Int[np.ndarray, " s"]:
    """How well seeds are translated by a search that does not know them: leave some out.

    Each fold of the seeds is left out once, and its source rows are translated among all target
    rows (CSLS). The search looks at fewer rows than that of `discover`, which so does better.

    Args:
      source: as `discover`.
      target: as `discover`.
      seeds: known pairs.
      folds: parts of the seeds, cut to the seeds there are.
      rows: as `discover`.
      ordered: as `discover`.
      random_seed: of the folds too.
      config: as `discover`.

    Returns:
      The rank of each seed's target row among all translations of its source row, from 0; 10 where
      it is not among the first 10.

    Raises:
      UserError: as `discover`, or fewer than two folds or seeds.
    """
    _, x, y, seeds = prepare(source, target, seeds, ("source", "target"), OWN)
    folds = min(folds, len(seeds))
    if folds < 2:
        raise UserError(f"Cannot leave out any of {len(seeds)} seeds in {folds} folds: give two.")
    config = _settled(config, ordered)
    ranks = np.full(len(seeds), 10)
    order = np.random.default_rng(random_seed).permutation(len(seeds))
    for fold in np.array_split(order, folds):
        kept = np.delete(seeds, fold, axis=0)
        maps, _ = _solve(x, y, kept, rows, random_seed, None, config)
        queries = unit(x[seeds[fold, 0]] @ maps[0])
        keys = unit(y @ maps[1])
        neighbours = min(10, len(keys), len(x))
        hubness = mean_top_k(keys, unit(x[:rows] @ maps[0]), neighbours)
        index = csls_top_k(queries, keys, neighbours, key_hubness=hubness)[1]
        hit = np.asarray(index) == seeds[fold, 1][:, None]
        ranks[fold] = np.where(hit.any(axis=1), hit.argmax(axis=1), 10)
    return ranks


def prepare(source, target, seeds, names, method) -> tuple[Aligner, Array, Array, np.ndarray]:
    """Checked and normalised spaces and seeds, and the aligner but for its matrix.

    Raises:
      UserError: see `discover`.
    """
    seeds = np.zeros((0, 2), int) if seeds is None or not len(seeds) else np.asarray(seeds)
    # Any pair will do for an aligner of which only the normalisation is kept.
    pairs = seeds if len(seeds) else [[0, 0]]
    fitted = "procrustes" if method == OWN else method
    aligner = alignment.fit(
        fitted, source, target, pairs=pairs, moving=names[0], fixed=names[1], frequent=ROWS
    )
    x, y = aligner.normalise_moving(source), aligner.normalise_fixed(target)
    for name, space in zip(names, (x, y), strict=True):
        if len(space) < LEAST_ROWS:
            raise UserError(
                f"The space '{name}' has {len(space)} vectors: give at least {LEAST_ROWS}."
            )
    for side, name in enumerate(names):
        values, counts = np.unique(seeds[:, side], return_counts=True)
        if (counts > 1).any():
            raise UserError(
                f"Row {values[counts > 1][0]} of the space '{name}' is in more than one seed: "
                "keep one of them."
            )
    return aligner, x, y, seeds


def _settled(config: ConfigDict | None, ordered: bool) -> ConfigDict:
    config = ConfigDict(config or defaults.config())
    search.check(config)
    if not ordered:
        config.bootstrap.search_words = ROWS
        config.bootstrap.anneal_words = config.start.words = (MOST_IN_A_PLAN,)
    return config


def _solve(x, y, seeds, rows, random_seed, workdir, config):
    """Maps of source and target into common coordinates, and the search's notes."""
    # The target's anchors are the given ones; only its seeds are needed here.
    kept = [np.union1d(seeds[:, i], np.arange(min(rows, len(z)))) for i, z in enumerate((x, y))]
    moving_seeds, fixed_seeds = (np.searchsorted(kept[i], seeds[:, i]) for i in (0, 1))
    problem = Problem(y[kept[1]], x[kept[0]], fixed_seeds, moving_seeds)
    with tempfile.TemporaryDirectory() as folder:
        work = workdir or Workdir(Path(folder), {})
        run = Run(config, work, "align", random_seed)
        (to_target, to_source), notes = search.converge(problem, run)[2:]
    return (jnp.asarray(to_source), jnp.asarray(to_target)), notes
