"""The problem that is solved: finding parallel anchors.

The anchors of a source space are given, those of a target space are sought, and a few pairs of
parallel anchors are known.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from anchor_opt.relative import unit_relative
from common.arrays import AnyArray
from common.errors import UserError
from common.linear import apply_map, apply_maps
from common.run import train
from common.run.workdir import Workdir


class Problem(NamedTuple):
    """Find the anchors of the target space that are parallel to those of the source space.

    Attributes:
      source: [n, d_source] preprocessed vectors of the space whose anchors are given.
      target: [m, d_target] those of the space whose anchors are sought, rows shuffled.
      anchors: [k] rows of `source` that are its anchors; the first p are in known pairs.
      target_pairs: [p] rows of `target` that are paired with the first p anchors.
      truth: [n] row of `target` that is the same item as each row of `source`. It is read by the
        methods `gt` and `lstsq_truth` and by the evaluation; -1 for an item that `target` lacks,
        which no anchor is. None if unknown; the spaces may then be of different sizes.
      ranks: [n] and [m] ranks of the rows of `source` and of `target`, each by the frequencies of
        its own space, the smallest rank for the most frequent row. None if they have no frequency.
      sought: the direction: which of an experiment's two spaces, its source or its target, is the
        `target` here, whose anchors are sought.
    """

    source: Float[AnyArray, "n d_source"]
    target: Float[AnyArray, "m d_target"]
    anchors: Int[np.ndarray, " k"]
    target_pairs: Int[np.ndarray, " p"]
    truth: Int[np.ndarray, " n"] | None = None
    ranks: tuple[Int[np.ndarray, " n"], Int[np.ndarray, " m"]] | None = None
    sought: str = "target"

    @property
    def known_truth(self) -> Int[np.ndarray, " n"]:
        """`truth`; a ValueError if it is unknown."""
        if self.truth is None:
            raise ValueError("the true partners are unknown")
        return self.truth

    def seen(self, reads_truth: bool) -> "Problem":
        """What a method is given, which reads the truth or does not."""
        return self if reads_truth else self._replace(truth=None)

    @property
    def source_pairs(self) -> Int[np.ndarray, " p"]:
        """Rows of `source` that are in known pairs."""
        return self.anchors[: len(self.target_pairs)]

    @property
    def pairs(self) -> tuple[Int[np.ndarray, " p"], Int[np.ndarray, " p"]]:
        """Rows of `source` and rows of `target` that are in known pairs."""
        return self.source_pairs, self.target_pairs

    @property
    def shared(self) -> tuple[Int[np.ndarray, " s"], Int[np.ndarray, " s"]]:
        """Rows of `source` and of `target` that are the same items; they are the truth."""
        rows = np.flatnonzero(self.known_truth >= 0)
        return rows, self.known_truth[rows]

    @property
    def source_anchors(self) -> Float[Array, "k d_source"]:
        """The given anchors."""
        return jnp.take(self.source, self.anchors, axis=0)

    def relative(
        self, anchors: Float[Array, "k d_target"]
    ) -> tuple[Float[Array, "n k"], Float[Array, "n k"]]:
        """`unit_relative` rows of both spaces over the first k anchors, row i the same item."""
        source = unit_relative(self.source, self.source_anchors[: len(anchors)])
        return source, unit_relative(jnp.take(self.target, self.known_truth, axis=0), anchors)


class Run(NamedTuple):
    """What a method is run with."""

    settings: Any  # `methods.Settings`, the values of every method
    work: Workdir  # the run's folder
    part: str  # of the run, under whose name its logs and checkpoints are kept
    random_seed: int  # of the methods' random draws
    progress: bool = True  # whether to show progress bars

    @property
    def train(self) -> train.Stages:
        """The training loop in this run's folder."""
        return train.Stages(self.work, self.part, self.progress)


class Result(NamedTuple):
    """The result of a method: anchors that are parallel to the source space's first k anchors.

    Attributes:
      maps: of the rows of source and target into the method's own common coordinates, up to the
        length of rows; None if it has none.
      notes: what the method reports about itself; it does not read the true pairing for it.
      placed: common coordinates of the problem's own rows, where no map gives those of others.
    """

    anchors: Float[Array, "k d_target"]
    maps: tuple[Float[AnyArray, "d_source r"], Float[AnyArray, "d_target r"]] | None = None
    notes: dict = {}  # noqa: RUF012  # never written to
    placed: tuple[Float[Array, "n r"], Float[Array, "m r"]] | None = None

    @classmethod
    def of_map(cls, problem: Problem, matrix: Float[Array, "d_source d_target"]) -> "Result":
        """The images of the source space's anchors under a map of the source onto the target."""
        maps = matrix, np.eye(problem.target.shape[1], dtype=np.float32)
        return cls(apply_map(problem.source_anchors, matrix), maps)

    def coordinates(
        self, source: Float[AnyArray, "n d_source"], target: Float[AnyArray, "m d_target"]
    ) -> tuple[Float[Array, "n r"], Float[Array, "m r"]]:
        """Unit rows of both spaces in the method's common coordinates."""
        return self.placed or apply_maps((source, target), self.maps)


def sample(
    source: Float[AnyArray, "n d_source"],
    target: Float[AnyArray, "n d_target"],
    *,
    num_anchors: int,
    num_pairs: int,
    random_seed: int,
    wrong_pair_fraction: float = 0.0,
    ranks: tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]] | None = None,
) -> Problem:
    """Draws anchors and known pairs uniformly and shuffles the target space (paper, A.2).

    Row i of `source` and of `target` is the same item; the shuffle hides this from the methods. The
    anchors depend on the random seed and the number of rows alone, so that both directions use the
    same items. In a fraction of the known pairs, rounded, the target row is another one at random.

    UserError: there are more anchors than rows or more pairs than anchors.
    """
    num_rows = source.shape[0]
    check_sizes(num_pairs, num_anchors, num_rows)
    rng = np.random.default_rng(random_seed)
    anchors = rng.permutation(num_rows)[:num_anchors]
    order = rng.permutation(num_rows)  # row i of the shuffled space is item order[i]
    truth = np.argsort(order)
    pairs = truth[anchors[:num_pairs]]
    others = rng.permutation(np.setdiff1d(np.arange(num_rows), pairs))
    wrong = rng.permutation(num_pairs)[: round(wrong_pair_fraction * num_pairs)]
    pairs[wrong] = others[: len(wrong)]
    return Problem(
        source=source,
        target=jnp.take(target, order, axis=0),
        anchors=anchors,
        target_pairs=pairs,
        truth=truth,
        ranks=ranks and (ranks[0], ranks[1][order]),
    )


def partly_shared(
    source: Float[AnyArray, "N d_source"],
    target: Float[AnyArray, "N d_target"],
    random_seed: int,
    *,
    num_rows: int,
    shared: float,
    num_anchors: int,
    num_pairs: int,
) -> Problem:
    """Draws `num_rows` of each space, of which a fraction, rounded, are the same items.

    Row i of `source` and of `target` is the same item. Anchors are among the shared items, which
    are therefore at least as many. The problem has no ranks; `truth` is -1 for items that the
    target lacks.

    UserError: there are more anchors than rows or more pairs than anchors.
    """
    check_sizes(num_pairs, num_anchors, num_rows)
    rng = np.random.default_rng(random_seed)
    both = max(round(shared * num_rows), num_anchors)
    items = rng.permutation(len(source))[: 2 * num_rows - both]
    order, target_order = rng.permutation(num_rows), rng.permutation(num_rows)
    place = np.argsort(target_order)  # the row of the target that holds each of its items
    truth = np.where(order < both, place[order], -1)
    anchors = rng.permutation(np.flatnonzero(truth >= 0))[:num_anchors]
    target_items = np.concatenate([items[:both], items[num_rows:]])
    return Problem(
        source=source[items[order]],
        target=target[target_items[target_order]],
        anchors=anchors,
        target_pairs=truth[anchors[:num_pairs]],
        truth=truth,
    )


def check_sizes(num_pairs: int, num_anchors: int, num_rows: int) -> None:
    """Raises a UserError if there are more anchors than rows or more pairs than anchors."""
    if not 0 <= num_pairs <= num_anchors <= num_rows:
        raise UserError(
            f"num_pairs={num_pairs}, num_anchors={num_anchors} and {num_rows} rows do not fit: "
            "choose num_pairs <= num_anchors <= number of rows."
        )
