"""What to do with a store of vectors when its embedding model changes.

From items that both models have embedded, `migrate` fits a map of the old vectors into the new
model's space, estimates what each way to go on keeps (remapping.py, estimate.py), judges it where
relevant documents are known (strategies.py), and says what to do.
"""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from absl import logging
from jaxtyping import Float, Int

import isthmus
from common import alignment, likeness
from common.alignment import Aligner
from common.arrays import AnyArray, Unchecked
from common.data.sets.dictionary import one_to_one
from common.errors import UserError
from common.linear import unit
from isthmus.align import LEARNING_ROWS
from isthmus.store import remapping, strategies
from isthmus.store.estimate import Estimates, estimates_of
from isthmus.store.pairs import metric_doubt, sampled, searched, wrong_partners
from isthmus.store.remapping import SETTINGS, Choice, Settings
from isthmus.store.strategies import Judgement, Searched

METRIC_NOTES: dict[str | None, str] = {
    "hamming": "the map takes bits as numbers, -1 or 1: unpack the old vectors before `isthmus "
    "apply` (np.unpackbits(old, axis=1) * 2.0 - 1)"
}
MATCHED_ROWS = 10_000  # of each space among which matches are sought if there are few pairs


class Queries(NamedTuple):
    """Queries by raw vectors of both models, and the documents that are relevant to them."""

    old: Float[AnyArray, "q d_old"]
    new: Float[AnyArray, "q d_new"]
    relevant: Int[np.ndarray, "r 2"]  # query, row of the old vectors


class Advice(NamedTuple):
    """What to do: a strategy, and the number of candidates that the new model puts in order."""

    strategy: str
    candidates: int | None = None


class Migration(NamedTuple):
    """What to do, and why.

    Attributes:
      advice: the strategy, see `isthmus/store/strategies.py`, and its number of candidates.
      aligner: maps raw old vectors into the new model's space, and normalises new ones.
      choice: the comparison of maps by which it was chosen.
      estimates: the shares of the ten nearest rows that are kept.
      pairs: (old row, new row) to which the map is fitted.
      search: the probability that the search for these pairs has succeeded; None: they were given.
      judged: the quality of the strategies among the paired documents; None without queries.
      sizes: numbers of the old and of the new vectors.
      settings: what has to be kept.
      doubts: what may be wrong with the pairs or the metric, see `pairs`.
      note: what is to be said of the metric, and is no doubt.
      duplicates: number of pairs that were left out as near-duplicates of others.
      suspicious: pairs that were left out since their partners are probably of other items.
      with_suspicious: the estimates from these pairs as well; None: there are none.
    """

    advice: Advice
    aligner: Aligner
    choice: Choice
    estimates: Estimates
    pairs: Int[np.ndarray, "p 2"]
    search: float | None
    judged: list[Judgement] | None
    sizes: tuple[int, int]
    settings: Settings = SETTINGS
    doubts: tuple[str, ...] = ()
    note: str | None = None
    duplicates: int = 0
    suspicious: Int[np.ndarray, "w 2"] = np.zeros((0, 2), int)
    with_suspicious: Estimates | None = None

    def __repr__(self) -> str:
        strategy, count = self.advice
        kept = {name: of["recall_10"].value for name, of in self.estimates._asdict().items()}
        shares = ", ".join(f"{name}={value:.3f}" for name, value in kept.items())
        return (
            f"Migration({strategy!r}, candidates={count}, {shares}, pairs={len(self.pairs)}, "
            f"certain={self.certain})"
        )

    @property
    def failed(self) -> bool:
        """Whether a search for pairs reports a failure; then nothing here is to be used."""
        return self.search is not None and self.search < 0.5

    @property
    def certain(self) -> bool:
        """Whether the pairs say enough: no doubt, and shares within the tolerance."""
        shares = self.estimates.by_map["recall_10"], self.estimates.by_old["recall_10"]
        sure = all(share.uncertainty <= self.settings.tolerance for share in shares)
        return sure and not self.failed and not self.doubts


def migrate(
    old: Float[AnyArray, "n d_old"],
    new: Float[AnyArray, "m d_new"],
    pairs: Annotated[Unchecked, "p 2"] | None = None,
    *,
    old_model_runs: bool = True,
    queries: Queries | None = None,
    metric: str | None = None,
    candidates: Sequence[int] = (),
    settings: Settings = SETTINGS,
    random_seed: int = 0,
    progress: bool = False,
) -> Migration:
    """Says what to do when the embedding model of a store changes.

    Maps of the normalised vectors are compared on held-out pairs (`remapping.choose`). From the
    same pairs follows what the lists of the mapped store and of the old model keep of the ten
    nearest rows that a re-embedded store would have (`estimate.estimated`), and from these shares
    the cheapest way that keeps enough (`advise`). `aligner.apply` maps the store, and
    `aligner.normalise_target` makes queries for it of the new model's.

    Args:
      old: raw vectors of the whole store by the old model.
      new: raw vectors of some items by the new model.
      pairs: (old row, new row) of items that both have embedded, the more the better; fewer than
        `remapping.MANY_PAIRS` or None: more are sought among the first rows of both, in minutes.
      old_model_runs: whether queries can still be embedded by the old model.
      queries: whose relevant documents are known. Strategies are judged among the paired documents
        alone, because the new model's vectors of others are not there.
      metric: by which the old store is searched, a key of `pairs.METRICS`; None: by cosines, unless
        the vectors look otherwise, which is said.
      candidates: further numbers of them, beside those of `remapping.LENGTHS`.
      settings: what has to be kept, among others.
      random_seed: of the search for pairs.
      progress: whether the search shows progress bars.
    """
    lengths = remapping.lists_of(candidates)
    known = np.zeros((0, 2), int) if pairs is None else np.asarray(pairs)
    matched, crowded, duplicates = None, None, 0
    if metric == "hamming":
        old = np.asarray(searched(old, metric))
    if len(known) < remapping.MANY_PAIRS:
        if progress:
            few = f"There are {len(known)} pairs, and a map needs {remapping.MANY_PAIRS}"
            logging.info("%s: the rows of both files are matched first, which takes minutes.", few)
        options = {"rows": MATCHED_ROWS, "ordered": False, "keep_failed": True}
        options |= {"names": ("old", "new"), "random_seed": random_seed, "progress": progress}
        matched = isthmus.discover(old, new, known, **options)
        known = matched.anchors
    else:
        alignment.normalised(old, new, known, ("old", "new"))
        known = known[one_to_one(known)]
        chosen, crowded = sampled(searched(old, None), known[:, 0])
        known, duplicates = known[chosen], len(known) - len(chosen)

    def paired():
        return np.asarray(old)[known[:, 0]], np.asarray(new)[known[:, 1]]

    def estimated() -> Estimates:
        olds = (searched(old, by) for by in ((metric, other) if other else (metric,)))
        return estimates_of(choice, paired()[1], known[:, 0], olds, old, settings, lengths)

    exchanged, others = None, len(new) - len(known) - duplicates
    if len(new) > len(old) and len(new) - others > 0.9 * len(old):
        exchanged = f"--new has {others:,} rows that are not in --old: are they exchanged?"
    of_metric, other = METRIC_NOTES.get(metric), None
    if metric is None:
        of_metric, other = metric_doubt(*paired())
    choice, suspicious, with_suspicious = remapping.choose(*paired(), settings), known[:0], None
    share = 0.0  # of the pairs, wrong ones that are not known
    for _ in range(0 if matched else 3):  # without wrong partners more of them are found
        wrong, share = wrong_partners(choice, *paired())
        if not wrong.any():
            break
        with_suspicious = with_suspicious or estimated()
        suspicious, known = np.concatenate([suspicious, known[wrong]]), known[~wrong]
        choice = remapping.choose(*paired(), settings)
    unlike = f"about {share:.0%} of the pairs are not of one item"
    unlike += ", or the models have little in common: compare the ids of both files"
    estimates = estimated()
    rows = choice.aligner.normalise_source(old[:LEARNING_ROWS])
    advice = advise(estimates, old_model_runs, settings)
    judged = None if queries is None else _judged(queries, known, paired(), choice, metric, lengths)
    again = [one.gain_high for one in judged or () if one.ranking.strategy == "re-embedded"]
    if again and again[0] <= 0 and old_model_runs:
        advice = Advice("old model")  # the new model is no better
    doubts = crowded, unlike if share else None, other and of_metric, exchanged
    return Migration(
        advice=advice,
        aligner=dataclasses.replace(choice.aligner, profile=likeness.profile(rows)),
        choice=choice,
        estimates=estimates,
        pairs=known,
        search=matched and matched.probability,
        judged=judged,
        sizes=(len(old), len(new)),
        settings=settings,
        doubts=tuple(filter(None, doubts)),
        note=None if other else of_metric,
        duplicates=duplicates,
        suspicious=suspicious,
        with_suspicious=with_suspicious,
    )


def advise(estimates: Estimates, old_model_runs: bool, settings: Settings = SETTINGS) -> Advice:
    """The cheapest strategy, by what a query costs, that is estimated to keep enough.

    Lists that are shown as they are have to keep `wanted_of_map`. The old model's candidates need
    to keep `wanted_of_old`, which is less: it is a good model itself, and what it leaves out is
    seldom what was asked for.
    """
    by_map, by_old = estimates
    if old_model_runs and by_old["recall_10"].value >= settings.wanted_of_map:
        return Advice("old model")
    if by_map["recall_10"].value >= settings.wanted_of_map:
        return Advice("mapped store")
    for name in by_map:
        length = remapping.length_of(name)
        if old_model_runs and by_old[name].value >= settings.wanted_of_old:
            return Advice("old candidates", length)
        if by_map[name].value >= settings.wanted_of_map:
            return Advice("mapped candidates", length)
    return Advice("re-embedded")


def _judged(queries: Queries, pairs, paired, choice: Choice, metric, lengths) -> list[Judgement]:
    """All strategies among the held-out pairs, each mapped by a map that was not fitted to it."""
    row_of = {old_row: i for i, old_row in enumerate(pairs[choice.rows, 0].tolist())}
    relevant = [(q, row_of[d]) for q, d in np.asarray(queries.relevant).tolist() if d in row_of]
    if not relevant:
        raise UserError(
            "No relevant document of a query is among the paired ones: embed some of them by the "
            "new model, and give them as pairs."
        )
    # The bits of a store are unpacked already.
    by_old = "cosine" if metric == "hamming" else metric
    documents = searched(paired[0][choice.rows], by_old), searched(paired[1][choice.rows], None)
    asked = searched(queries.old, metric), searched(queries.new, None)
    normalised = unit(choice.aligner.normalise_target(queries.new))
    lists = strategies.rankings(
        Searched(asked[0], documents[0]),
        Searched(asked[1], documents[1]),
        Searched(normalised, choice.mapped),
        lengths=lengths,
    )
    return strategies.judge(lists, np.array(relevant))
