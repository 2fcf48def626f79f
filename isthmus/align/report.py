"""The report of `python -m isthmus.align`: what was found, and how far it can be trusted."""

import base64
import html
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from jaxtyping import Float
from markdown_it import MarkdownIt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.decomposition import PCA

from common.data.sets.dictionary import one_to_one
from common.linear import unit
from common.run import results
from common.run.figures import COLOURS
from isthmus.align import Alignment, HeldOut
from isthmus.align.generalised_procrustes import CommonCoordinates
from isthmus.align.space import Space

NUM_SHOWN = 12  # pairs listed in the report
NUM_NEIGHBOURS = 3  # listed of each of these pairs' source rows
NUM_DRAWN = 300  # pairs in the figure of the map
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 62rem; margin: auto; padding: 1rem }}
table {{ display: block; overflow-x: auto; border-collapse: collapse }}
th, td {{ padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #ccc; text-align: left }}
img {{ width: 30rem; max-width: 100% }}
pre {{ overflow-x: auto }}
</style>
{body}
</html>
"""
INTRODUCTION = """# Alignment into the space of {target}

`{target}` ({rows} vectors of {dimensions} dimensions) is only normalised: unit length, centred,
unit length. `target.vec` and `target.npz` hold the normalised vectors, with which the aligned
vectors of the sources, also of unit length, are compared.
"""
FILES = """
## Files

`report.html` is this report with its figures in one file. The folder of each source holds
`anchors.tsv`, the pairs that are each other's best partner, by descending confidence;
`dictionary.tsv`, the best target row of every source row, mutual pairs first; `map.npz`, the linear
map with its centring and scaling; `aligned.npz`, the mapped source, and `aligned.vec` if no word
holds a tab or line end;
and `relative.npz`, both spaces as cosines with the anchors of highest confidence. With several
sources, `common/NAME.npz` maps the vectors of any space, the target's too, into common coordinates.
New vectors of a source are mapped by

    isthmus apply new.vec --map=THIS_FOLDER/SOURCE/map.npz --out=mapped.npz

CSLS of a pair: twice its cosine minus the mean cosine of either row with its nearest neighbours in
the other space. Confidence of a pair: the smaller of exp(30 cos) divided by its sum over all target
rows and divided by its sum over all source rows. It ranks pairs; it is not the probability that a
pair is right.
"""
FIGURES = """Self-learning: the mean CSLS (a cosine, corrected for rows that are near to many) of
the best matches at each step. It may fall after the first step, which is measured in the
coordinates of the initialization, and where the search leaves fewer similarities out at random:
values before and after are not comparable, and nothing is wrong. A search has failed if its line
ends near that of wrong pairs. Similarity: mutual pairs should stand apart from random ones."""

COMMON = """`common/NAME.npz` maps the vectors of every space, the target's too, into common
coordinates, in which any two spaces are compared by cosines. These maps are fitted together, to the
rows of each two spaces that are each other's best partner, so that they do not contradict each
other. Maps "alone" are orthogonal ones, each fitted to two spaces.

Error of two spaces: 1 minus the mean cosine of matches that were left out of the fit.
"""


def warnings(source: Space, result: Alignment, held_out: HeldOut | None) -> list[str]:
    """Sentences on a failure, on held-out pairs and on pairs that were left out."""
    sentences = []
    if result.failed:
        sentences.append(
            f"The alignment of '{source.name}' has failed: maps fitted to some of its matches "
            f"find {result.agreement:.0%} of the others, where self-learning from wrong pairs has "
            f"{result.chance_agreement:.0%}; do not use these results, give more known pairs or "
            "closer spaces."
        )
    if held_out is not None and len(held_out.ranks) > 3 and not (held_out.ranks == 0).any():
        sentences.append(f"No held-out pair of '{source.name}' was found.")
    if source.num_unknown:
        sentences.append(
            f"{source.num_unknown} known pairs of '{source.name}' were left out, because a "
            "space lacks one of their words or rows."
        )
    return sentences


def section(
    source: Space,
    target: Space,
    result: Alignment,
    held_out: HeldOut | None,
    names: Iterable[str],
    seconds: float,
) -> str:
    """The section of one source.

    Args:
      source: the space that is mapped.
      target: the space that it is mapped onto.
      result: of `discover`.
      held_out: that of `align.held_out`; None if there was no check.
      names: of the `figures`, each in the file SOURCE/NAME.png.
      seconds: that all of it took.
    """

    def named(rows):
        return [(_escaped(source.words[s]), _escaped(target.words[t])) for s, t in rows]

    num_pairs = 0 if source.pairs is None else len(source.pairs)
    facts = [
        ("vectors", f"{len(source.words)} of {source.vectors.shape[1]} dimensions"),
        ("known pairs", f"{num_pairs}"),
        ("initialization", result.initialization),
        (
            "agreement (matches that maps fitted to other matches find again)",
            f"{result.agreement:.3f}, of a search from wrong pairs {result.chance_agreement:.3f}",
        ),
        (
            "agreement beyond chance",
            f"{result.corrected_agreement:z.3f} (0: as from wrong pairs; 1: full agreement)",
        ),
        ("probability of success", f"{result.probability:.2f}"),
        ("failed", "YES" if result.failed else "no"),
        ("mutual pairs (rows that are each other's best match)", f"{len(result.anchors)}"),
        ("their median confidence", f"{np.median(result.confidence):.2f}"),
    ]
    if held_out is not None:
        hits = [f"P@{k} {np.mean(held_out.ranks < k):.3f}" for k in (1, 10)]
        random = f"a random guess {1 / len(target.words):.2g}"
        facts.append((f"{len(held_out.ranks)} held-out pairs", f"{', '.join(hits)} ({random})"))
    if source.pairs is not None and num_pairs:
        unused = np.delete(source.pairs, one_to_one(source.pairs), axis=0)
        if len(unused):
            examples = ", ".join(" / ".join(pair) for pair in named(unused[:NUM_SHOWN]))
            facts.append(("other translations, not fitted to", f"{len(unused)}: {examples}"))
        rejected = named(source.pairs[result.rejected_pairs])
        words = ", ".join(" / ".join(pair) for pair in rejected[:NUM_SHOWN])
        facts.append(("known pairs rejected", f"{len(rejected)}: {words}" if rejected else "0"))
    facts.append(("time", f"{seconds:.0f} s"))
    shown = np.unique(np.linspace(0, len(result.anchors) // 2, NUM_SHOWN, dtype=int))
    pairs = [
        (*pair, f"{confidence:.2f}")
        for pair, confidence in zip(
            named(result.anchors[shown]), result.confidence[shown], strict=True
        )
    ]
    parts = [
        f"\n## {source.name}",
        *(f"**Warning.** {sentence}" for sentence in warnings(source, result, held_out)),
        results.markdown((source.name, f"mapped onto {target.name}"), facts),
        "\n".join(f"![{name}](<{source.name}/{name}.png>)" for name in names),
        FIGURES,
        "Some pairs, from the highest confidence to the median:",
        results.markdown(("source", "target", "confidence"), pairs),
        f"The neighbours of these rows by cosine: before, in {source.name}, and after the map, in "
        f"{target.name}:",
        results.markdown(("source", "before", "after"), _neighbours(source, target, result, shown)),
    ]
    return "\n\n".join(parts) + "\n"


def common_section(
    target: Space, left_out: Sequence[str], coordinates: CommonCoordinates | None
) -> str:
    """All spaces in common coordinates.

    Args:
      target: the space whose coordinates are common.
      left_out: names of the sources whose alignment has failed.
      coordinates: of all spaces; None if fewer than two sources are left.
    """
    title = f"\n## All spaces in the coordinates of {target.name}\n\n"
    failed = f"Left out, because their alignment has failed: {', '.join(left_out)}.\n\n"
    if coordinates is None:
        return f"{title}{failed}Fewer than two sources are left, which need no common maps.\n"
    check = coordinates.check
    links = [
        (f"{i}, {j}", f"{len(pairs)}", *(f"{error:z.3f}" for error in check.links[i, j]))
        for (i, j), pairs in coordinates.pairs.items()
    ]
    cycles = [
        (" -> ".join((*cycle, cycle[0])), *(f"{x:z.3f}" for x in (*errors, *check.lost[cycle])))
        for cycle, errors in check.cycles.items()
    ]
    headers = "error alone", "error in common"
    return f"""{title}{failed if left_out else ""}{COMMON}
{results.markdown(("spaces", "matches", *headers), links)}

Error of a cycle: 1 minus the mean cosine of a row with itself, after it was mapped through the
other spaces and back; a space of fewer dimensions on the way cannot hold all of it. Lost: the
fraction of matches along the cycle that do not lead back to the same row.

{results.markdown(("cycle", *headers, "lost alone", "lost in common"), cycles)}
"""


def document(target: Space, sections: Sequence[str]) -> str:
    """The whole report."""
    rows, dimensions = target.vectors.shape
    first = INTRODUCTION.format(target=target.name, rows=rows, dimensions=dimensions)
    return first + "".join(sections) + FILES


def page(text: str, title: str, folder: Path) -> str:
    """A report in Markdown as one HTML page, which holds its figures, PNG files in `folder`."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    inline = (child for token in tokens for child in token.children or ())
    for image in (child for child in inline if child.type == "image"):
        content = (folder / unquote(str(image.attrs["src"]))).read_bytes()
        image.attrs["src"] = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    body = parser.renderer.render(tokens, parser.options, {})
    return PAGE.format(title=html.escape(title), body=body)


def _escaped(word: str) -> str:
    """A word as it is, in a table in Markdown, where a line end would end the row."""
    return re.sub(r"([\\`*_\[\]<>|&])", r"\\\1", re.sub(r"[\t\r\n]", " ", word))


def _mapped(
    source: Space, target: Space, result: Alignment
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "m d"]]:
    """Unit rows of the source mapped onto the target, and of the target."""
    mapped_source = result.aligner.apply(source.vectors)
    normalised_target = result.aligner.normalise_target(target.vectors)
    return unit(np.asarray(mapped_source)), unit(np.asarray(normalised_target))


def _neighbours(source: Space, target: Space, result: Alignment, shown) -> list[tuple[str, ...]]:
    """The words nearest to the source rows of some pairs, in the source and in the target."""
    before = np.asarray(result.aligner.normalise_source(source.vectors))
    after, keys = _mapped(source, target, result)
    rows = result.anchors[shown, 0]

    def nearest(cosines, words):
        order = np.argsort(-cosines, axis=1)[:, :NUM_NEIGHBOURS]
        return [", ".join(_escaped(words[i]) for i in line) for line in order]

    own = before[rows] @ before.T
    own[np.arange(len(rows)), rows] = -np.inf  # the row itself
    columns = nearest(own, source.words), nearest(after[rows] @ keys.T, target.words)
    return list(zip((_escaped(source.words[i]) for i in rows), *columns, strict=True))


def figures(
    source: Space,
    target: Space,
    result: Alignment,
    held_out: HeldOut | None,
    records: Sequence[dict],
) -> dict[str, Figure]:
    """Name -> figure.

    The objective over the steps of self-learning from each initialization; cosines of the mutual
    pairs and of random pairs after the map; the confidence of the mutual pairs; the pairs of
    highest confidence by PCA; and the precision of held-out pairs over their confidence if there
    was a check.
    """
    by_name = {}

    def axis(name: str, **labels) -> Axes:
        by_name[name] = Figure(figsize=(5, 3.6), layout="constrained")
        axis = by_name[name].subplots()
        axis.set(**labels)
        axis.spines[["top", "right"]].set_visible(False)
        return axis

    objective = axis(
        "objective", xlabel="step", ylabel="objective (mean best CSLS)", title="Self-learning"
    )
    for name, points in _objectives(records).items():
        objective.plot(*zip(*points, strict=True), marker="o", ms=3, label=f"from {name}")
    objective.legend(frameon=False)

    mapped_source, keys = _mapped(source, target, result)
    rows, partners = result.anchors.T
    others = np.random.default_rng(0).permutation(len(keys))[partners]
    cosines = axis("cosines", xlabel="cosine after the map", ylabel="density", title="Similarity")
    bins = np.linspace(-1, 1, 81).tolist()
    for label, columns in (("mutual pairs", partners), ("random pairs", others)):
        values = np.sum(mapped_source[rows] * keys[columns], axis=1)
        cosines.hist(values, bins=bins, density=True, alpha=0.6, label=label)
    cosines.legend(frameon=False)

    confidence = axis("confidence", xlabel="confidence", ylabel="pairs", title="Mutual pairs")
    confidence.hist(result.confidence, bins=np.linspace(0, 1, 41).tolist(), color=COLOURS[0])

    if held_out is not None:
        precision = axis("held_out", title=f"{len(held_out.ranks)} held-out pairs", ylim=(0, 1.05))
        precision.set(xlabel="confidence of at least", ylabel="fraction that is right (precision)")
        order = np.argsort(-held_out.confidence, kind="stable")
        right = np.cumsum(held_out.ranks[order] == 0) / np.arange(1, len(order) + 1)
        precision.plot(held_out.confidence[order], right, marker="o", ms=3, color=COLOURS[0])

    some = rows[:NUM_DRAWN], partners[:NUM_DRAWN]
    if min(len(rows), keys.shape[1]) >= 2:
        title = f"The {len(some[0])} pairs of highest confidence, mapped"
        scatter = axis("map", xticks=[], yticks=[], title=title)
        pca = PCA(2, random_state=0).fit(keys[some[1]])
        points = np.stack([pca.transform(mapped_source[some[0]]), pca.transform(keys[some[1]])])
        lines = points.transpose(2, 0, 1)  # a line for each pair
        scatter.plot(*lines, color="0.8", lw=0.6, zorder=0)
        for name, xy, colour in zip((source.name, target.name), points, COLOURS, strict=False):
            scatter.scatter(*xy.T, s=8, color=colour, label=name)
        scatter.legend(frameon=False)
    return by_name


def _objectives(records: Sequence[dict]) -> dict[str, list[tuple[int, float]]]:
    """Initialization -> step and objective of self-learning, of the records of a run."""
    curves: dict[str, list] = {}
    for record in records:
        stage = record["part"].removeprefix("align/")
        if "objective" in record and stage.startswith(("self-learning-", "chance-baseline")):
            name = stage.removeprefix("self-learning-").replace("chance-baseline-", "wrong pairs ")
            curves.setdefault(name, []).append((record["step"], record["objective"]))
    return curves
