"""What `migrate` returns."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from common.alignment import Aligner
from isthmus.store import remapping
from isthmus.store.remapping import Advice, Choice, Estimates
from isthmus.store.strategies import Judgement

SETTINGS = remapping.Settings()


class Search(NamedTuple):
    """What the search for pairs says of itself, see `isthmus.align.Alignment`."""

    probability: float
    failed: bool


class Migration(NamedTuple):
    """What to do, and why.

    Attributes:
      advice: the strategy, see `isthmus/store/strategies.py`, and its number of candidates.
      aligner: maps raw old vectors into the new model's space, and normalises new ones.
      choice: the comparison of maps by which it was chosen.
      estimates: the shares of the ten nearest rows that are kept.
      pairs: (old row, new row) to which the map is fitted.
      search: the search that has found the pairs; None if they were given.
      judged: the quality of the strategies among the paired documents; None without queries.
    """

    advice: Advice
    aligner: Aligner
    choice: Choice
    estimates: Estimates
    pairs: Int[np.ndarray, "p 2"]
    search: Search | None
    judged: list[Judgement] | None

    @property
    def failed(self) -> bool:
        """Whether a search for pairs reports a failure; then nothing here is to be used."""
        return self.search is not None and self.search.failed

    @property
    def certain(self) -> bool:
        """Whether the pairs say enough: no failed search, and shares within the tolerance."""
        shares = self.estimates.by_map["recall_10"], self.estimates.by_old["recall_10"]
        return not self.failed and all(one.uncertainty <= SETTINGS.tolerance for one in shares)
