"""Tables and figures of retrieval across two spaces of words or images, and the paper's numbers.

Labels of the rows: `representation` is 'relative', 'absolute' (without anchors), 'mapped' (the
method's own common coordinates) or 'search' (what a search reports about itself); `optimised` is
the space whose anchors were sought.
"""

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure

from anchor_opt.reports.searches import METHOD_TITLES, PUBLISHED_METHOD, failures, rates, titled
from common.arrays import AnyArray
from common.linear import unit
from common.run.figures import BELOW, styles
from common.run.records import Record
from common.run.results import Published, Row, frame, pivot, plus_minus, select

NEIGHBOURS = 15  # rows of one colour in a scatter
LINES = {"title": "Method", "anchors": "Anchors"}
NOTES = (
    "Least squares on the truth: a strong reference and not a bound. P@1: under CSLS. discrete: "
    "each anchor is replaced by its nearest row (Algorithm 1, line 10). own map: P@1 in the "
    "method's own common coordinates, without anchors. The paper's AO line stands beside Algorithm "
    "1 as printed and in other forms, and beside ours. absolute: without anchors."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paper:
    """The paper's numbers on one pair of spaces: K = 10, five random seeds, relative vectors.

    `lines`: (the paper's method, of 'ao' with the optimised role; the role of the space that
    queries the other one) -> (mean, standard deviation) of Jaccard, MRR and cosine.
    """

    dataset: str  # what the paper measured on
    proxy_for: str  # the encoders whose place our source and target take
    lines: Mapping[tuple[str, str], tuple[tuple[float, float], ...]]

    def beside(self, row: Row) -> Published | None:
        """The number of the same method, metric and direction."""
        role = dict(zip(row.dataset.split(" -> "), ("source", "target"), strict=True))
        ours = row.method in PUBLISHED_METHOD
        line = f"ao {role[row.get('optimised')]}" if ours else row.method
        numbers = self.lines.get((line, role.get(row.source)))
        metrics = ("jaccard", "mrr", "cosine")
        if not numbers or row.metric not in metrics or row.get("representation") != "relative":
            return None
        if row.source == row.target:
            return Published(1.0, 0.0, self.dataset)
        return Published(*numbers[metrics.index(row.metric)], self.dataset)


# Tables 4 (anchors of Word2Vec sought) and 5 (those of FastText); Table 1 is the part of Table 4
# between different spaces. FastText is the source here, Word2Vec the target.
WORDS = Paper(
    dataset="FastText / Word2Vec, 20,000 words",
    proxy_for="FastText and Word2Vec",
    lines={
        ("gt", "source"): ((0.34, 0.01), (0.94, 0.00), (0.86, 0.00)),
        ("gt", "target"): ((0.39, 0.00), (0.98, 0.00), (0.86, 0.00)),
        ("seed", "source"): ((0.06, 0.01), (0.11, 0.01), (0.85, 0.01)),
        ("seed", "target"): ((0.06, 0.01), (0.15, 0.02), (0.85, 0.01)),
        ("ao target", "source"): ((0.52, 0.00), (0.99, 0.00), (0.94, 0.00)),
        ("ao target", "target"): ((0.50, 0.01), (0.99, 0.00), (0.94, 0.00)),
        ("ao source", "source"): ((0.49, 0.00), (0.98, 0.00), (0.93, 0.00)),
        ("ao source", "target"): ((0.50, 0.00), (0.99, 0.00), (0.93, 0.00)),
    },
)


# Table 7; its row labels are legible in arXiv version 2 alone. The paper does not say whose anchors
# were optimised: taken to be those of the second space, ViT-small, as in Table 1.
IMAGES = Paper(
    dataset="ViT-base / ViT-small, about 20,000 images of CIFAR-10",
    proxy_for="ViT-base and ViT-small",
    lines={
        ("gt", "source"): ((0.11, 0.00), (0.27, 0.01), (0.97, 0.00)),
        ("gt", "target"): ((0.10, 0.00), (0.28, 0.01), (0.97, 0.00)),
        ("seed", "source"): ((0.03, 0.00), (0.03, 0.01), (0.97, 0.00)),
        ("seed", "target"): ((0.03, 0.00), (0.04, 0.01), (0.96, 0.00)),
        ("ao target", "source"): ((0.10, 0.01), (0.23, 0.03), (0.97, 0.00)),
        ("ao target", "target"): ((0.10, 0.00), (0.28, 0.01), (0.97, 0.00)),
    },
)

PAPERS = {"retrieval": WORDS, "vision": IMAGES}  # by experiment


def published(row: Row, config: Mapping[str, Any]) -> Published | None:
    """The paper's number beside a row."""
    return PAPERS[config["experiment"]].beside(row)


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown: retrieval between different spaces, a table for each direction.

    Absolute vectors, which are the same beside each method, and own maps have lines of their own.
    """
    paper = PAPERS[record.config["experiment"]]
    lines = [_line(row) for row in record.rows if row.get("representation") != "search"]
    tables = {}
    for sought, of_space in frame(titled(lines)).groupby("optimised", sort=False):
        for names, shown in of_space.groupby(["dataset", "source", "target"], sort=False):
            if names[1] != names[2]:
                table = pivot(shown, lines=LINES, published=paper.beside, paper_digits=2)
                about = caption(shown["row"].iloc[0], record.config["num_anchors"], paper)
                title = f"{names[1]} -> {names[2]}, anchors of {sought} sought"
                tables[title] = f"{table}\n\n{about}"
    return tables | failures(record.failed) | rates(record.rows) | {"Notes": NOTES}


def _line(row: Row) -> Row:
    """The row as a line of a table."""
    match row.get("representation"):
        case "absolute":
            return dataclasses.replace(row, method="absolute")
        case "mapped":
            return dataclasses.replace(row, anchors="own map")
    return row


def caption(row: Row, num_anchors: int, paper: Paper) -> str:
    """One line on the data and the task."""
    layers = ", two layers of one model" if row.dataset == "minilm -> minilm_input" else ""
    proxy = f", proxies for {paper.proxy_for}" if row.proxy else ""
    sizes = f"{row.num_items:,} items, {row.num_pairs} known pairs, {num_anchors} anchors"
    runs = f"mean ± std over {row.num_runs} random runs" if row.num_runs > 1 else "one random run"
    beside = "" if row.quick else f" Paper: {paper.dataset}."
    return f"{row.dataset}{layers}{proxy}; {sizes}; {runs}.{beside}"


def relative_spaces(
    rows: Sequence[Row],
    vectors: Mapping[str, Float[AnyArray, "n d"]],
    anchors: Mapping[str, Mapping[str, Float[AnyArray, "k d"]]],
    groups: Mapping[str, list[int]],
) -> dict[str, Figure]:
    """`relative_spaces`, as in the paper's Table 1, of first random runs; none without groups.

    Args:
      rows: of all random runs and of one optimised space at first; titles have the MRR of theirs.
      vectors: role -> preprocessed rows; row i of both is the same item.
      anchors: method -> role -> anchors of its first random run.
      groups: name -> rows that are coloured.
    """
    panels, first = {}, rows[0]
    names = tuple(first.dataset.split(" -> "))
    wanted = {"metric": "mrr", "source": names[0], "target": names[1]}
    wanted |= {name: first.get(name) for name in ("representation", "optimised", "random_seed")}
    for method in ("gt", "seed", *PUBLISHED_METHOD):
        if method in anchors:
            mrr = next(r for r in select(rows, method=method, **wanted) if r.anchors != "discrete")
            title = f"{METHOD_TITLES[method]}\nMRR {plus_minus(mrr.mean, None)}"
            panels[title] = tuple(
                unit(np.asarray(vectors[r]) @ np.asarray(x).T)
                for r, x in sorted(anchors[method].items())
            )
    if not (panels and groups):
        return {}
    heading = (
        f"Relative spaces by PCA, first random run: {' and '.join(names)}, {first.num_items:,} "
        f"items, anchors of {first.get('optimised')} sought"
    )
    # The names of long items are cut between words.
    shown = {textwrap.shorten(name, 50, placeholder=" …"): rows for name, rows in groups.items()}
    return {"relative_spaces": scatter_grid(panels, names, shown, heading)}


def scatter_grid(
    panels: dict[str, tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]],
    row_names: tuple[str, str],
    groups: dict[str, list[int]],
    title: str,
) -> Figure:
    """Two spaces in 2-D, one above the other, with a column for each method of `panels`.

    Both are projected to the principal axes of the coloured rows of the upper space, so that the
    two plots of a column look alike if the spaces correspond. `groups` has label -> rows with a
    common colour and marker.
    """
    figure = Figure(figsize=(3.2 * len(panels), 6.2), layout="constrained")
    axes = figure.subplots(2, len(panels), squeeze=False)
    coloured = sorted({row for members in groups.values() for row in members})
    for column, (name, spaces) in zip(axes.T, panels.items(), strict=True):
        column[0].set_title(name)
        # Of NumPy, since the import of scikit-learn's PCA takes half a second.
        centred = spaces[0][coloured] - spaces[0][coloured].mean(axis=0)
        axes_of_plot = np.linalg.svd(centred, full_matrices=False)[2][:2].T
        for axis, points in zip(column, (x @ axes_of_plot for x in spaces), strict=True):
            axis.set(xticks=[], yticks=[])
            axis.scatter(*points.T, s=1, color="0.88", linewidths=0, rasterized=True)
            for (label, members), style in zip(
                groups.items(), styles(groups).values(), strict=True
            ):
                # The number of a class is its own marker.
                marker, size = (f"${label}$", 45) if label.isdigit() else (style.marker, 18)
                marks = {"s": size, "color": style.colour, "marker": marker, "linewidths": 0}
                axis.scatter(*points[members].T, label=label, **marks)
    for axis, name in zip(axes[:, 0], row_names, strict=True):
        axis.set_ylabel(name)
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, ncols=3 if max(map(len, groups)) > 9 else 6, markerscale=2, **BELOW)
    figure.suptitle(title)
    return figure


def word_groups(
    chosen: Sequence[str], words: Sequence[str], space: Float[np.ndarray, "n d"]
) -> dict[str, list[int]]:
    """The nearest words of each chosen one that is in the vocabulary, or else of the first five.

    The rows are preprocessed.
    """
    rows = [words.index(word) for word in chosen if word in words] or list(range(5))
    nearest = np.argsort(-space[rows] @ space.T, axis=1, kind="stable")[:, :NEIGHBOURS]
    return {words[row]: members for row, members in zip(rows, nearest.tolist(), strict=True)}


def class_groups(
    labels: Int[np.ndarray, " n"], space: Float[np.ndarray, "n d"]
) -> dict[str, list[int]]:
    """The rows of each class that are nearest to its mean; the rows are preprocessed."""
    groups = {}
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        typical = np.argsort(-space[rows] @ space[rows].mean(axis=0), kind="stable")
        groups[str(label)] = rows[typical[:NEIGHBOURS]].tolist()
    return groups
