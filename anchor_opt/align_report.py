"""The page that tells a user what was found, and how far to trust it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from anchor_opt.api import Alignment
from anchor_opt.relative import unit
from common import report

SHOWN = 12  # pairs on the page
FIRST_LINES = """# Alignment into the space of {target}

`{target}` ({rows} vectors of {dimensions} dimensions) did not move. `target.vec` and `target.npz`
are its vectors as normalised (unit length, centred, unit length), to compare the aligned ones with.
"""
LAST_LINES = """
## Files

For each source, in its folder: `anchors.tsv`, pairs that choose each other, the surest first;
`dictionary.tsv`, the best target of every source row, mutual pairs first; `map.npz`, the linear
map with its centring and scaling; `aligned.vec` / `aligned.npz`, the source moved by it;
`relative.npz`, both spaces as cosines with the surest anchors. New vectors of a source later:

    python -m anchor_opt.align --apply=new.vec --map=THIS_FOLDER/SOURCE/map.npz --out=moved.npz

CSLS: 2 cos - mean cosine of either side with its nearest others. Confidence: the smaller of a
pair's shares in exp(30 cos) summed over all targets and over all sources; it orders pairs, but is
no probability of being right.
"""


def warnings(source, found: Alignment, ranks: np.ndarray | None) -> list[str]:
    """What the user must not miss, in sentences."""
    said = []
    if found.failed:
        said.append(
            f"The alignment of '{source.name}' has failed: its objective {found.objective:.3f} is "
            f"no better than from wrong seeds ({found.chance:.3f}); do not trust these results, "
            "give more seeds or closer spaces."
        )
    if ranks is not None and not (ranks == 0).any() and len(ranks) > 3:
        said.append(f"No held-out seed of '{source.name}' was found again.")
    if source.seeds and source.seeds.unknown:
        said.append(
            f"{source.seeds.unknown} pairs for '{source.name}' have a word that a space lacks and "
            "were left out."
        )
    return said


def page(source, task, found: Alignment, ranks, records, folder: Path, seconds: float) -> str:
    """The section of one source; draws its figure.

    Args:
      source: what was moved.
      task: what it was moved into.
      found: how.
      ranks: of held-out seeds; None if none were.
      records: the log of the search.
      folder: of the figure.
      seconds: it took.
    """
    words, target_words = source.space.words, task.target.words
    seeds = len(source.seeds.rows) if source.seeds else 0
    facts = [
        ("vectors", f"{len(words)} of {source.space.vectors.shape[1]} dimensions"),
        ("seeds", f"{seeds}"),
        ("started from", found.start),
        ("objective", f"{found.objective:.3f}, from wrong seeds {found.chance:.3f}"),
        ("failed", "YES" if found.failed else "no"),
        ("pairs that choose each other", f"{len(found.anchors)}"),
        ("median confidence of them", f"{np.median(found.confidence):.2f}"),
    ]
    if ranks is not None:
        hits = [f"P@{k} {np.mean(ranks < k):.3f}" for k in (1, 10)]
        chance = f"by chance {1 / len(target_words):.2g}"
        facts.append((f"{len(ranks)} held-out seeds", f"{', '.join(hits)} ({chance})"))
    if seeds:
        doubted = [source.seeds.rows[i] for i in found.disbelieved]
        named = ", ".join(f"{words[s]} / {target_words[t]}" for s, t in doubted[:SHOWN])
        facts.append(("seeds it disbelieves", f"{len(doubted)}" + (f": {named}" if named else "")))
    facts.append(("time", f"{seconds:.0f} s"))
    pairs = [
        (words[s], target_words[t], f"{confidence:.2f}")
        for (s, t), confidence in zip(found.anchors, found.confidence, strict=True)
    ]
    report.save_figure(_figure(source, task, found, records), folder / f"{source.name}.png")
    parts = [
        f"\n## {source.name}",
        *(f"**Warning.** {sentence}" for sentence in warnings(source, found, ranks)),
        report.markdown((source.name, f"moved into {task.target_name}"), facts),
        f"![{source.name}: search, confidence, map]({source.name}.png)",
        "The surest pairs, and some from the middle:",
        report.markdown(("source", "target", "confidence"), _some(pairs)),
    ]
    return "\n\n".join(parts) + "\n"


def _some(pairs: Sequence) -> list:
    middle = len(pairs) // 2
    first = pairs[: SHOWN // 2]
    return [*first, *pairs[max(middle, len(first)) :][: SHOWN // 2]]


def join(task, pages: Sequence[str]) -> str:
    """The whole report."""
    rows, dimensions = task.target.vectors.shape
    first = FIRST_LINES.format(target=task.target_name, rows=rows, dimensions=dimensions)
    return first + "".join(pages) + LAST_LINES


def _figure(source, task, found: Alignment, records: Sequence[dict]) -> Figure:
    figure = Figure(figsize=(13, 4), layout="constrained")
    search, confidence, scatter = figure.subplots(1, 3)
    curves: dict[str, list] = {}
    for record in records:
        kind = record["part"].removeprefix("align/search-")
        if "objective" in record and kind != record["part"]:
            curves.setdefault(kind, []).append((record["step"], record["objective"]))
    for kind, points in curves.items():
        search.plot(*zip(*points, strict=True), marker="o", ms=3, label=f"from {kind}")
    search.axhline(found.chance, color="0.4", ls="--", lw=1, label="from wrong seeds")
    search.set(xlabel="step", ylabel="objective (mean best CSLS)", title="Search")
    search.legend(frameon=False)
    confidence.hist(found.confidence, bins=np.linspace(0, 1, 41), color=report.COLOURS[0])
    confidence.set(xlabel="confidence", ylabel="pairs", title="Pairs that choose each other")
    if min(len(found.anchors), task.target.vectors.shape[1]) >= 2:
        _draw_map(scatter, source, task, found)
    for axis in (search, confidence):
        axis.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_map(axis, source, task, found: Alignment) -> None:
    from sklearn.decomposition import PCA  # takes a second

    rows = found.anchors[:300]
    spaces = (
        unit(found.aligner.apply(source.space.vectors[rows[:, 0]])),
        found.aligner.normalise_fixed(task.target.vectors[rows[:, 1]]),
    )
    points = [PCA(2, random_state=0).fit(spaces[1]).transform(space) for space in spaces]
    for a, b in zip(*points, strict=True):
        axis.plot(*zip(a, b, strict=True), color="0.8", lw=0.6, zorder=0)
    for name, xy, colour in zip(
        (source.name, task.target_name), points, report.COLOURS, strict=False
    ):
        axis.scatter(*xy.T, s=8, color=colour, label=name)
    axis.set(xticks=[], yticks=[], title=f"The {len(rows)} surest pairs, after the map")
    axis.legend(frameon=False)
