"""The report of `isthmus align`: what was found, and how far it can be trusted."""

import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from common.arrays import AnyArray
from common.data.sets.dictionary import one_to_one
from common.errors import UserError, local_path, writing
from common.files import write_atomically
from common.linear import unit
from common.run import results
from isthmus import picture
from isthmus.align.discovery import Alignment, HeldOut
from isthmus.align.files import Space
from isthmus.pages import filled, page

NUM_SHOWN = 12  # pairs listed in the report
NUM_DRAWN = 300  # pairs in the figure of the map
MAX_LABELS = 8  # of a legend


def warnings(source: Space, result: Alignment, held_out: HeldOut | None) -> list[str]:
    """Sentences on a failure, on held-out pairs and on pairs that were left out."""
    sentences = []
    if result.failed:
        sentences.append(f"The alignment of '{source.name}' has failed: {result.failure}")
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
    if expected := result.expected:
        facts["expected share of right best matches"] = results.plus_minus(*expected)
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
    sentences = warnings(source, result, held_out)
    return filled(
        "source.md",
        source=source.name,
        warnings="".join(f"\n**Warning.** {sentence}\n" for sentence in sentences),
        facts=results.markdown((source.name, f"mapped onto {target.name}"), [*facts.items()]),
        pairs=results.markdown(("source", "target", "confidence"), pairs),
    )


def common_section(
    target: Space, left_out: Sequence[str], matches: Mapping[tuple[str, str], int]
) -> str:
    """On all spaces in common coordinates, but for the names left out; see `joined.join`."""
    first = f"## All spaces in the coordinates of {target.name}\n\n"
    if left_out:
        first += f"Left out, because their alignment has failed: {', '.join(left_out)}.\n\n"
    if not matches:
        return f"{first}Fewer than two sources are left, which need no common maps.\n"
    links = [[", ".join(names), f"{count}"] for names, count in matches.items()]
    return first + filled("common.md", links=results.markdown(("spaces", "matches"), links))


def document(target: Space, sections: Sequence[str]) -> str:
    """The whole report."""
    rows, dimensions = target.vectors.shape
    values = {"target": target.name, "rows": rows, "dimensions": dimensions}
    return filled("alignment.md", sections="\n".join(sections), **values)


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
        shown = stage.startswith(("self-learning-", "chance-baseline"))
        if "objective" in record and shown:
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
