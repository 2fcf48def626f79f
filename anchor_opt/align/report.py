"""The report of `python -m anchor_opt.align`: what was found, and how far it can be trusted."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from sklearn.decomposition import PCA

from anchor_opt.align import Alignment, ChangedModel
from anchor_opt.align.files import Space
from common import remapping, report
from common.linear import unit

NUM_SHOWN = 12  # pairs listed in the report
NUM_DRAWN = 300  # pairs in the figure
INTRODUCTION = """# Alignment into the space of {target}

`{target}` ({rows} vectors of {dimensions} dimensions) is only normalised: unit length, centred,
unit length. `target.vec` and `target.npz` hold the normalised vectors, with which the aligned
vectors of the sources are compared.
"""
FILES = """
## Files

The folder of each source holds `anchors.tsv`, the pairs that are each other's best partner, by
descending confidence; `dictionary.tsv`, the best target row of every source row, mutual pairs
first; `map.npz`, the linear map with its centring and scaling; `aligned.vec` and `aligned.npz`, the
mapped source; `relative.npz`, both spaces as cosines with the anchors of highest confidence; and,
with `--wanted_recall`, `new_model.npz`, the map of a store into a new model's space.
New vectors of a source are mapped by

    isthmus apply new.vec --map=THIS_FOLDER/SOURCE/map.npz --out=mapped.npz

CSLS of a pair: twice its cosine minus the mean cosine of either row with its nearest neighbours in
the other space. Confidence of a pair: the smaller of exp(30 cos) divided by its sum over all target
rows and divided by its sum over all source rows. It ranks pairs; it is not the probability that a
pair is right.
"""


def warnings(source: Space, found: Alignment, ranks: np.ndarray | None) -> list[str]:
    """Sentences on a failed search, on held-out pairs and on pairs that were left out."""
    sentences = []
    if found.failed:
        sentences.append(
            f"The alignment of '{source.name}' has failed: maps fitted to some of its matches "
            f"find {found.agreement:.0%} of the others, where a search from wrong pairs has "
            f"{found.null_agreement:.0%}; do not use these results, give more known pairs or "
            "closer spaces."
        )
    if ranks is not None and len(ranks) > 3 and not (ranks == 0).any():
        sentences.append(f"No held-out pair of '{source.name}' was found.")
    if source.num_unknown:
        sentences.append(
            f"{source.num_unknown} known pairs of '{source.name}' were left out, because a "
            "space lacks one of their words."
        )
    return sentences


def section(
    source: Space, target: Space, found: Alignment, ranks: np.ndarray | None, seconds: float
) -> str:
    """The section of one source; `ranks` are those of `held_out`, None if there was no check."""

    def named(rows):
        return [(source.words[s], target.words[t]) for s, t in rows]

    num_pairs = 0 if source.pairs is None else len(source.pairs)
    facts = [
        ("vectors", f"{len(source.words)} of {source.vectors.shape[1]} dimensions"),
        ("known pairs", f"{num_pairs}"),
        ("starting point", found.start),
        ("agreement", f"{found.agreement:.3f}, from wrong pairs {found.null_agreement:.3f}"),
        ("gain", f"{found.gain:.3f} (0: as from wrong pairs; 1: full agreement)"),
        ("probability of success", f"{found.probability:.2f}"),
        ("failed", "YES" if found.failed else "no"),
        ("mutual pairs", f"{len(found.anchors)}"),
        ("their median confidence", f"{np.median(found.confidence):.2f}"),
    ]
    if ranks is not None:
        hits = [f"P@{k} {np.mean(ranks < k):.3f}" for k in (1, 10)]
        random = f"a random guess {1 / len(target.words):.2g}"
        facts.append((f"{len(ranks)} held-out pairs", f"{', '.join(hits)} ({random})"))
    if num_pairs:
        rejected = named(source.pairs[found.rejected_pairs])
        words = ", ".join(" / ".join(pair) for pair in rejected[:NUM_SHOWN])
        facts.append(("known pairs rejected", f"{len(rejected)}: {words}" if rejected else "0"))
    facts.append(("time", f"{seconds:.0f} s"))
    shown = np.unique(np.linspace(0, len(found.anchors) // 2, NUM_SHOWN, dtype=int))
    pairs = [
        (*pair, f"{confidence:.2f}")
        for pair, confidence in zip(
            named(found.anchors[shown]), found.confidence[shown], strict=True
        )
    ]
    parts = [
        f"\n## {source.name}",
        *(f"**Warning.** {sentence}" for sentence in warnings(source, found, ranks)),
        report.markdown((source.name, f"mapped onto {target.name}"), facts),
        f"![{source.name}: search, confidence, map]({source.name}.png)",
        "Some pairs, from the highest confidence to the median:",
        report.markdown(("source", "target", "confidence"), pairs),
    ]
    return "\n\n".join(parts) + "\n"


def store_section(
    source: Space, found: Alignment, changed: ChangedModel, wanted_recall: float
) -> str:
    """What a store keeps that is mapped into the target's space instead of embedded again."""
    if changed.num_known:
        basis = f"held-out pairs of the {changed.num_known} known ones"
    else:
        basis = f"held-out pairs of the {len(found.anchors)} that were found, not on known ones"
    names = {"recall_1": "recall@1", "recall_10": "recall@10", "rank_correlation": "rank corr."}
    facts = [(names[name], report.plus_minus(*one)) for name, one in changed.kept.items()]
    facts += [
        (f"recall@10 with {count} pairs", report.plus_minus(*one))
        for count, one in changed.curve.items()
    ]
    maps = ", ".join(f"{one.method} {one.kept:.3f}" for one in changed.choice.candidates)
    facts += [("kept by each map, held-out pairs", maps), ("chosen", changed.choice.aligner.method)]
    return f"""
### Changing the embedding model of {source.name}

{verdict(changed, found.failed and not changed.num_known, wanted_recall)}

Of the vectors nearest to a query of the new model in the re-embedded store of {len(source.words):,}
vectors, recall@k is the fraction of the first k that the mapped store has among its first k. It is
estimated on {basis}, and extrapolated to the size of the store; ± is about two standard errors.

{report.markdown((source.name, "kept"), facts)}
"""


def verdict(changed: ChangedModel, failed: bool, wanted_recall: float) -> str:
    """One sentence: whether the store is to be mapped or embedded again."""
    kept = changed.kept["recall_10"]
    share = f"{report.plus_minus(*kept)} of the ten nearest vectors"
    if failed or kept.uncertainty > remapping.Settings().tolerance:
        reason = "the search has failed" if failed else f"{share} is too uncertain"
        return (
            f"**Verdict.** The estimate is not to be trusted, because {reason}: embed more items "
            "by both models and give them as known pairs."
        )
    enough = [count for count, one in changed.curve.items() if one.value >= wanted_recall]
    if kept.value >= wanted_recall:
        pairs = f" ({enough[0]} pairs would be enough)" if enough else ""
        return f"**Verdict.** Map the store: it keeps {share}, as many as wanted{pairs}."
    more = "" if enough else ", which no number of pairs in the table reaches"
    return (
        f"**Verdict.** Embed the store again: mapped it keeps {share}, fewer than the wanted "
        f"{wanted_recall:.2f}{more}."
    )


def document(target: Space, sections: Sequence[str]) -> str:
    """The whole report."""
    rows, dimensions = target.vectors.shape
    first = INTRODUCTION.format(target=target.name, rows=rows, dimensions=dimensions)
    return first + "".join(sections) + FILES


def figure(source: Space, target: Space, found: Alignment, records: Sequence[dict]) -> Figure:
    """Objective over the steps of each search, histogram of confidence, and mapped pairs by PCA."""
    drawn = Figure(figsize=(13, 4), layout="constrained")
    search, confidence, scatter = drawn.subplots(1, 3)
    curves: dict[str, list] = {}
    for record in records:
        stage = record["part"].removeprefix("align/")
        if "objective" in record and stage.startswith(("search-", "null")):
            start = "wrong pairs" if stage == "null" else stage.removeprefix("search-")
            curves.setdefault(start, []).append((record["step"], record["objective"]))
    for start, points in curves.items():
        search.plot(*zip(*points, strict=True), marker="o", ms=3, label=f"from {start}")
    search.set(xlabel="step", ylabel="objective (mean best CSLS)", title="Search")
    confidence.hist(found.confidence, bins=np.linspace(0, 1, 41), color=report.COLOURS[0])
    confidence.set(xlabel="confidence", ylabel="pairs", title="Mutual pairs")
    for axis in (search, confidence):
        axis.spines[["top", "right"]].set_visible(False)
    rows = found.anchors[:NUM_DRAWN]
    if min(len(rows), target.vectors.shape[1]) >= 2:
        mapped = unit(found.aligner.apply(source.vectors[rows[:, 0]]))
        partners = found.aligner.normalise_target(target.vectors[rows[:, 1]])
        pca = PCA(2, random_state=0).fit(partners)
        points = np.stack([pca.transform(space) for space in (mapped, partners)])
        scatter.plot(
            *points.transpose(2, 0, 1), color="0.8", lw=0.6, zorder=0
        )  # a line for each pair
        for name, xy, colour in zip(
            (source.name, target.name), points, report.COLOURS, strict=False
        ):
            scatter.scatter(*xy.T, s=8, color=colour, label=name)
        scatter.legend(frameon=False)
    title = f"The {len(rows)} pairs of highest confidence, mapped"
    scatter.set(xticks=[], yticks=[], title=title)
    search.legend(frameon=False)
    return drawn
