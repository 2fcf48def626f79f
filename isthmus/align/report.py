"""The report of `isthmus align`: what was found, and how far it can be trusted."""

import base64
import html
import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from urllib.parse import unquote

import numpy as np
from jaxtyping import Float
from markdown_it import MarkdownIt
from matplotlib.figure import Figure

from common.arrays import AnyArray
from common.data.sets.dictionary import one_to_one
from common.errors import UserError, local_path, writing
from common.files import write_atomically
from common.linear import unit
from common.run import results
from isthmus import picture
from isthmus.align.discovery import OF_DISJOINT, Alignment, HeldOut
from isthmus.align.files import Space

NUM_SHOWN = 12  # pairs listed in the report
NUM_DRAWN = 300  # pairs in the figure of the map
MAX_LABELS = 8  # of a legend
PAGE = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
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
ALT = "Self-learning, cosines, held-out pairs, and pairs of highest confidence"
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
    if result.failed and result.disjoint:
        sentences.append(
            f"The alignment of '{source.name}' has failed: two runs of self-learning map "
            f"{result.agreement:.0%} of the rows alike; do not use these results, give more "
            "vectors, known pairs or closer spaces."
        )
    elif result.failed:
        sentences.append(
            f"The alignment of '{source.name}' has failed: maps fitted to some of its matches "
            f"find {result.agreement:.0%} of the others, where self-learning from wrong pairs has "
            f"{result.chance_agreement:.0%}; do not use these results, give "
            f"{'more' if source.pairs is not None else 'some'} known pairs or closer spaces. "
            + OF_DISJOINT.format(flag="--disjoint")
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
    source: Space, target: Space, result: Alignment, held_out: HeldOut | None, seconds: float
) -> str:
    """The section of one source, which has taken these seconds; no `held_out`: no check."""

    def named(rows):
        return [(_escaped(source.words[s]), _escaped(target.words[t])) for s, t in rows]

    def listed(rows):
        examples = (" / ".join(pair) for pair in named(rows[:NUM_SHOWN]))
        return f"{len(rows)}: {', '.join(examples)}" if len(rows) else "0"

    known = np.zeros((0, 2), int) if source.pairs is None else source.pairs
    facts = {
        "vectors": f"{len(source.words)} of {source.vectors.shape[1]} dimensions",
        "known pairs": f"{len(known)}",
        "initialization": result.initialization,
    }
    if result.disjoint:
        facts["agreement (rows that two runs map alike)"] = f"{result.agreement:.3f}"
    else:
        chance = f"of a search from wrong pairs {result.chance_agreement:.3f}"
        beyond = f"{result.corrected_agreement:z.3f} (0: as from wrong pairs; 1: full agreement)"
        facts |= {
            "agreement (matches that maps fitted to other matches find again)": (
                f"{result.agreement:.3f}, {chance}"
            ),
            "agreement beyond chance": beyond,
            "probability of success": f"{result.probability:.2f}",
        }
    facts |= {
        "failed": "YES" if result.failed else "no",
        "mutual pairs (rows that are each other's best match)": f"{len(result.anchors)}",
        "their median confidence": f"{np.median(result.confidence):.2f}",
    }
    if held_out is not None:
        hits = ", ".join(f"P@{k} {np.mean(held_out.ranks < k):.3f}" for k in (1, 10))
        random = f"a random guess {1 / len(target.words):.2g}"
        facts[f"{len(held_out.ranks)} held-out pairs"] = f"{hits} ({random})"
    if len(known):
        unused = np.delete(known, one_to_one(known), axis=0)
        if len(unused):
            facts["other translations, not fitted to"] = listed(unused)
        facts["known pairs rejected"] = listed(known[result.rejected_pairs])
    facts["time"] = f"{seconds:.0f} s"
    shown = np.unique(np.linspace(0, len(result.anchors) // 2, NUM_SHOWN, dtype=int))
    some = zip(named(result.anchors[shown]), result.confidence[shown], strict=True)
    pairs = [(*pair, f"{confidence:.2f}") for pair, confidence in some]
    parts = [
        f"\n## {source.name}",
        *(f"**Warning.** {sentence}" for sentence in warnings(source, result, held_out)),
        results.markdown((source.name, f"mapped onto {target.name}"), [*facts.items()]),
        f"![{ALT}](<{source.name}/figure.png>)",
        FIGURES,
        "Some pairs, from the highest confidence to the median:",
        results.markdown(("source", "target", "confidence"), pairs),
    ]
    return "\n\n".join(parts) + "\n"


def common_section(
    target: Space,
    left_out: Sequence[str],
    matches: Mapping[tuple[str, ...], int],
    errors: Mapping[tuple[str, ...], tuple[float, float]],
) -> str:
    """On all spaces in common coordinates, but for the names left out; see `joined.join`."""
    title = f"\n## All spaces in the coordinates of {target.name}\n\n"
    failed = f"Left out, because their alignment has failed: {', '.join(left_out)}.\n\n"
    if not matches:
        return f"{title}{failed}Fewer than two sources are left, which need no common maps.\n"
    links, cycles = [], []
    for names, both in errors.items():
        shown = [f"{error:z.3f}" for error in both]
        if names in matches:
            links.append([", ".join(names), f"{matches[names]}", *shown])
        else:
            cycles.append([" -> ".join((*names, names[0])), *shown])
    headers = "error alone", "error in common"
    return f"""{title}{failed if left_out else ""}{COMMON}
{results.markdown(("spaces", "matches", *headers), links)}

Error of a cycle: 1 minus the mean cosine of a row with itself, after it was mapped through the
other spaces and back; a space of fewer dimensions on the way cannot hold all of it.

{results.markdown(("cycle", *headers), cycles)}
"""


def document(target: Space, sections: Sequence[str]) -> str:
    """The whole report."""
    rows, dimensions = target.vectors.shape
    first = INTRODUCTION.format(target=target.name, rows=rows, dimensions=dimensions)
    return first + "".join(sections) + FILES


def page(text: str, title: str, folder: Path, end: str = "") -> str:
    """A report in Markdown as one HTML page with its figures, PNG of `folder`, and a last part."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    inline = (child for token in tokens for child in token.children or ())
    for image in (child for child in inline if child.type == "image"):
        content = (folder / unquote(str(image.attrs["src"]))).read_bytes()
        image.attrs["src"] = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    body = parser.renderer.render(tokens, parser.options, {})
    return PAGE.substitute(title=html.escape(title), body=body + end)


def write(folder: Path, text: str, title: str, views: Sequence[picture.View]) -> None:
    """Writes report.html, with figures and a picture to explore, and then report.md."""
    content = page(text, title, folder, picture.part(views))
    write_atomically(folder / "report.html", content.encode())
    write_atomically(folder / "report.md", text.encode())


def _escaped(word: str) -> str:
    """A word as it is, in a table in Markdown, where a line end would end the row."""
    return re.sub(r"([\\`*_\[\]<>|&])", r"\\\1", re.sub(r"[\t\r\n]", " ", word))


def figure(
    source: Space,
    target: Space,
    result: Alignment,
    held_out: HeldOut | None,
    records: Sequence[dict],
) -> Figure:
    """What the report shows of a source, in four axes; `records` are those of self-learning."""
    drawn = Figure(figsize=(10, 7.2), layout="constrained")
    objective, cosines, precision, scatter = drawn.subplots(2, 2).flat
    for axis in drawn.axes:
        axis.spines[["top", "right"]].set_visible(False)

    objective.set(xlabel="step", ylabel="objective (mean best CSLS)", title="Self-learning")
    curves: dict[str, list] = {}
    for record in records:
        stage = record["part"].removeprefix("align/")
        shown = stage.startswith(("self-learning-", "chance-baseline")) or stage.endswith("-rows")
        if "objective" in record and shown:  # of disjoint samples the last
            name = stage.removeprefix("self-learning-").replace("chance-baseline-", "wrong pairs ")
            curves.setdefault(name, []).append((record["step"], record["objective"]))
    for name, points in curves.items():
        objective.plot(*zip(*points, strict=True), marker="o", ms=3, label=f"from {name}")

    mapped_source = unit(np.asarray(result.aligner.apply(source.vectors)))
    keys = unit(np.asarray(result.aligner.normalise_target(target.vectors)))
    rows, partners = result.anchors.T
    others = np.random.default_rng(0).permutation(len(keys))[partners]
    cosines.set(xlabel="cosine after the map", ylabel="density", title="Similarity")
    for label, columns in (("mutual pairs", partners), ("random pairs", others)):
        values = np.sum(mapped_source[rows] * keys[columns], axis=1)
        cosines.hist(values, bins=81, range=(-1, 1), density=True, alpha=0.6, label=label)

    if held_out is None:
        precision.remove()
    else:
        order = np.argsort(-held_out.confidence, kind="stable")
        right = np.cumsum(held_out.ranks[order] == 0) / np.arange(1, len(order) + 1)
        precision.plot(held_out.confidence[order], right, marker="o", ms=3)
        precision.set(xlabel="confidence of at least", ylabel="fraction that is right (precision)")
        precision.set(title=f"{len(held_out.ranks)} held-out pairs", ylim=(0, 1.05))

    some = rows[:NUM_DRAWN], partners[:NUM_DRAWN]
    scatter.set(xticks=[], yticks=[])
    scatter.set(title=f"The {len(some[0])} pairs of highest confidence, mapped")
    if min(len(rows), keys.shape[1]) >= 2:
        from sklearn.decomposition import PCA  # whose import takes a second, to draw alone

        pca = PCA(2, random_state=0).fit(keys[some[1]])
        points = np.stack([pca.transform(mapped_source[some[0]]), pca.transform(keys[some[1]])])
        scatter.plot(*points.transpose(2, 0, 1), color="0.8", lw=0.6, zorder=0)
        for name, xy in zip((source.name, target.name), points, strict=True):
            scatter.scatter(*xy.T, s=8, label=name)
    for axis in (objective, cosines, scatter):
        if 0 < len(axis.get_legend_handles_labels()[0]) <= MAX_LABELS:  # disjoint samples have more
            axis.legend(frameon=False)
    return drawn


def explore(
    result: Alignment,
    source: Float[AnyArray, "n d_source"],
    target: Float[AnyArray, "m d_target"],
    path: Path | str,
    *,
    texts: tuple[Sequence[str], Sequence[str]] | None = None,
) -> None:
    """Writes a web page, one file, with a picture of both spaces to explore.

    Args:
      result: what `discover` has found between these vectors.
      source: raw vectors, n rows.
      target: raw vectors, m rows.
      path: of the page.
      texts: n and m texts, by which rows are shown and found; None: their numbers.
    """
    if importlib.util.find_spec("bokeh") is None:
        raise UserError(
            f"Pictures to explore are drawn by a library that is missing: {picture.MISSING}."
        )
    names, counts = (result.aligner.source, result.aligner.target), [len(source), len(target)]
    words = texts or [list(map(str, range(count))) for count in counts]
    if [*map(len, words)] != counts:
        given = f"{len(words[0]):,} and {len(words[1]):,} texts"
        raise UserError(f"There are {given} for {counts} vectors: give a text for each vector.")
    both = list(map(Space, names, map(list, words), map(np.asarray, (source, target))))
    view = picture.View(result.aligner, both[0], both[1], result.anchors, result.confidence)
    content = picture.part([view])
    path = Path(local_path(path))
    with writing(path, "path"):
        write_atomically(path, page("", " and ".join(names), Path(), content).encode())
