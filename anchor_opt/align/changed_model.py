"""A vector store that is mapped into a new model's space in the place of being embedded again."""

from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Float

from anchor_opt.align import Alignment
from anchor_opt.align.space import Space
from common import remapping
from common.arrays import AnyArray, Unchecked
from common.data.sets.dictionary import one_to_one
from common.run import results


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


def choose(
    source: Float[AnyArray, "n d_source"],
    target: Float[AnyArray, "m d_target"],
    pairs: Annotated[Unchecked, "s 2"] | None,
    result: Alignment,
) -> ChangedModel:
    """Chooses the map of a store (the source) into a new model's space, and says what it keeps.

    It is fitted to the mutual pairs of the result, which `discover` returns for the same
    arguments, or to the known pairs (`one_to_one`) if these are more, or many and the bootstrap has
    failed.

    Raises:
      UserError: fewer than ten pairs.
    """
    known = np.zeros((0, 2), int) if pairs is None else np.asarray(pairs)
    known = known[one_to_one(known)]
    few = remapping.MANY_PAIRS if result.failed else len(result.anchors)
    num_known = len(known) if len(known) >= few else 0
    rows = known if num_known else result.anchors
    paired = np.asarray(source)[rows[:, 0]], np.asarray(target)[rows[:, 1]]
    choice = remapping.choose(result.aligner, *paired)
    kept = remapping.estimated(choice.mapped, choice.embedded, len(source))
    curve = remapping.curve(result.aligner, *paired, len(source))
    return ChangedModel(choice, kept, curve, num_known)


def section(source: Space, result: Alignment, changed: ChangedModel, wanted_recall: float) -> str:
    """What a store keeps that is mapped into the target's space instead of embedded again."""
    if changed.num_known:
        basis = f"held-out pairs of the {changed.num_known} known ones"
    else:
        basis = f"held-out pairs of the {len(result.anchors)} that were found, not on known ones"
    names = {"recall_1": "recall@1", "recall_10": "recall@10", "rank_correlation": "rank corr."}
    facts = [(names[name], results.plus_minus(*value)) for name, value in changed.kept.items()]
    facts += [
        (f"recall@10 with {count} pairs", results.plus_minus(*value))
        for count, value in changed.curve.items()
    ]
    maps = ", ".join(f"{map.method} {map.kept:.3f}" for map in changed.choice.candidates)
    facts += [("kept by each map, held-out pairs", maps), ("chosen", changed.choice.aligner.method)]
    return f"""
### Changing the embedding model of {source.name}

{verdict(changed, result.failed and not changed.num_known, wanted_recall)}

Of the vectors nearest to a query of the new model in the re-embedded store of {len(source.words):,}
vectors, recall@k is the fraction of the first k that the mapped store has among its first k. It is
estimated on {basis}, and extrapolated to the size of the store; ± is about two standard errors.

{results.markdown((source.name, "kept"), facts)}
"""


def verdict(changed: ChangedModel, failed: bool, wanted_recall: float) -> str:
    """One sentence: whether the store is to be mapped or embedded again."""
    kept = changed.kept["recall_10"]
    share = f"{results.plus_minus(*kept)} of the ten nearest vectors"
    if failed or kept.uncertainty > remapping.Settings().tolerance:
        reason = "the alignment has failed" if failed else f"{share} is too uncertain"
        return (
            f"**Verdict.** The estimate is not to be trusted, because {reason}: embed more items "
            "by both models and give them as known pairs."
        )
    enough = [count for count, value in changed.curve.items() if value.value >= wanted_recall]
    if kept.value >= wanted_recall:
        pairs = f" ({enough[0]} pairs would be enough)" if enough else ""
        return f"**Verdict.** Map the store: it keeps {share}, as many as wanted{pairs}."
    more = "" if enough else ", which no number of pairs in the table reaches"
    return (
        f"**Verdict.** Embed the store again: mapped it keeps {share}, fewer than the wanted "
        f"{wanted_recall:.2f}{more}."
    )
