"""One anchor-finding task: two spaces, the anchors of the fixed one, a few of the other's.

And what a method gets and gives: `Run`, where it runs, and `Found`.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict

from anchor_opt.relative import relative_pair
from common.errors import UserError
from common.workdir import Workdir


class Problem(NamedTuple):
    """Find the anchors of the moving space that are parallel to those of the fixed space.

    Attributes:
      fixed: [n, d_fixed] preprocessed vectors of the space whose anchors are given.
      moving: [m, d_moving] those of the space whose anchors are sought, rows shuffled.
      anchors: [k] rows of `fixed` that are its anchors; the first s are the seeds.
      seeds: [s] rows of `moving` that are parallel to the first s anchors.
      truth: [n] row of `moving` that is the same word as each row of `fixed`. Only for the rows GT
        and oracle, for the evaluation, and for who is frequent. None where nobody knows it: the
        spaces may then be of any sizes, each with its most frequent rows first.
    """

    fixed: Float[Array, "n d_fixed"]
    moving: Float[Array, "m d_moving"]
    anchors: Int[np.ndarray, " k"]
    seeds: Int[np.ndarray, " s"]
    truth: Int[np.ndarray, " n"] | None = None

    def frequent(self, count: int) -> tuple[Int[np.ndarray, " f"], Int[np.ndarray, " m"]]:
        """The seeds and then the most frequent other words: rows of `fixed`, rows of `moving`.

        Only who is frequent is used, in each space by itself; the order is the shuffled one. A
        space with fewer rows than `count` gives all; seeds beyond `count` all count.
        """

        def rows(seeds, by_frequency):
            others = np.setdiff1d(by_frequency, seeds, assume_unique=True)
            return np.concatenate([seeds, np.sort(others[: max(count - len(seeds), 0)])])

        fixed = rows(self.fixed_seeds, np.arange(len(self.fixed)))
        if self.truth is not None:
            return fixed, rows(self.seeds, self.truth)
        moving = rows(self.seeds, np.arange(len(self.moving)))
        # Nobody has shuffled these: the order must not tell who belongs to whom.
        others = np.random.default_rng(0).permutation(moving[len(self.seeds) :])
        return fixed, np.concatenate([self.seeds, others])

    @property
    def most_rows(self) -> int:
        """Rows of the larger space."""
        return max(len(self.fixed), len(self.moving))

    def relative(
        self, anchors: Float[Array, "k d_moving"]
    ) -> tuple[Float[Array, "n k"], Float[Array, "n k"]]:
        """Unit relative rows of both spaces by the first k anchors, row i of both the same item."""
        rows = self.anchors[: len(anchors)]
        return relative_pair(self.fixed, self.moving, self.truth, rows, anchors)

    @property
    def fixed_seeds(self) -> Int[np.ndarray, " s"]:
        """Rows of `fixed` that are seeds."""
        return self.anchors[: len(self.seeds)]


class Run(NamedTuple):
    """Where a method runs: the config, the folder, the part's name and the random seed."""

    config: ConfigDict
    work: Workdir
    part: str
    random_seed: int


class Found(NamedTuple):
    """What a method found.

    Attributes:
      anchors: [k, d_moving], parallel to the fixed space's first k anchors.
      coordinates: the method's own common coordinates of both spaces, unit rows; None without.
      notes: what the method can say about itself without labels.
    """

    anchors: Float[Array, "k d_moving"]
    coordinates: tuple[Float[Array, "n r"], Float[Array, "n r"]] | None = None
    notes: dict = {}  # noqa: RUF012  # never written to


def sample(
    fixed: Float[Array, "n d_fixed"],
    moving: Float[Array, "n d_moving"],
    *,
    num_anchors: int,
    num_seeds: int,
    random_seed: int,
    noise: float = 0.0,
) -> Problem:
    """Draws anchors and seeds uniformly and shuffles the moving space (paper, A.2).

    Row i of `fixed` and of `moving` is the same word; the shuffle takes that knowledge from the
    methods. The anchors depend on the random seed and the number of rows alone, so both directions
    use the same words.

    Args:
      fixed: preprocessed vectors of the space whose anchors are given.
      moving: those of the other space, same words in the same order.
      num_anchors: k.
      num_seeds: s.
      random_seed: of the draw.
      noise: share of the seeds, rounded, whose moving row is a random other one.

    Raises:
      UserError: more anchors than rows, more seeds than anchors, no anchor, unpaired spaces, or a
        share outside 0 to 1.
    """
    num_rows = fixed.shape[0]
    if moving.shape[0] != num_rows:
        raise UserError(
            f"The spaces have {num_rows} and {moving.shape[0]} rows: give them the same words."
        )
    if not 0 <= num_seeds <= num_anchors <= num_rows or num_anchors < 1:
        raise UserError(
            f"num_seeds={num_seeds}, num_anchors={num_anchors} and {num_rows} words do not fit: "
            "take 0 <= num_seeds <= num_anchors <= num_words, and an anchor at least."
        )
    if not 0 <= noise <= 1:
        raise UserError(f"seed_noise is {noise}: give a share from 0 to 1.")
    rng = np.random.default_rng(random_seed)
    anchors = rng.permutation(num_rows)[:num_anchors]
    order = rng.permutation(num_rows)  # row i of the shuffled space is word order[i]
    truth = np.argsort(order)
    seeds = truth[anchors[:num_seeds]]
    others = rng.permutation(np.setdiff1d(np.arange(num_rows), seeds))
    wrong = rng.permutation(num_seeds)[: round(noise * num_seeds)]
    if len(wrong) > len(others):
        raise UserError(f"There are not {len(wrong)} other words for wrong seeds: ask for fewer.")
    seeds[wrong] = others[: len(wrong)]
    return Problem(fixed, moving[order], anchors, seeds, truth)
