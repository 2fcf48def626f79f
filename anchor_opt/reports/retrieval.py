"""Tables and figures of retrieval across two spaces, and the paper's numbers.

Labels of the rows: `representation` is 'relative', 'absolute' (without anchors), 'mapped' (the
method's own common coordinates) or 'search' (what a search reports about itself); `optimised` is
the space whose anchors were sought.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int
from matplotlib.figure import Figure

from anchor_opt.reports.searches import METHOD_TITLES, PUBLISHED_METHOD, failures, rates
from common.files import read_arrays
from common.linear import unit
from common.run.figures import scatter_grid
from common.run.results import Row, pivot, select
from common.run.workdir import Workdir

NEIGHBOURS = 15  # rows of one colour in a scatter
LINES = {"method": "Method", "anchors": "Anchors"}
NOTES = (
    "lstsq_truth: anchors fitted by least squares to the true pairing, a strong reference and not "
    "a bound. P@1: under CSLS. discrete: each anchor is replaced by its nearest row (Algorithm 1, "
    "line 10). own map: P@1 in the method's own common coordinates, without anchors. The paper's "
    "AO line stands beside algorithm1_printed, the published method as printed, beside algorithm1, "
    "the same with a small start, and beside bootstrap, which is ours. absolute: without anchors."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Published:
    """The paper's numbers on one pair of spaces: K = 10, five random seeds, relative vectors.

    Attributes:
      dataset: what the paper measured on.
      proxy_for: the encoders whose place our source and target take.
      lines: (the paper's method, of 'ao' with the optimised role; the role of the space that
        queries the other one) -> (mean, standard deviation) of Jaccard, MRR and cosine.
    """

    dataset: str
    proxy_for: str
    lines: Mapping[tuple[str, str], tuple[tuple[float, float], ...]]

    def value(
        self, method: str, optimised: str, source: str, target: str, metric: str
    ) -> tuple[float, float] | None:
        """The paper's mean and standard deviation, or None if it has none.

        `source` and `target` are the roles of the spaces that query and that are searched,
        `optimised` that of the space whose anchors are sought.
        """
        line = f"ao {optimised}" if method in PUBLISHED_METHOD else method
        metrics = ("jaccard", "mrr", "cosine")
        if (line, source) not in self.lines or metric not in metrics:
            return None
        return (1.0, 0.0) if source == target else self.lines[line, source][metrics.index(metric)]

    def fields(
        self, method: str, optimised: str, source: str, target: str, metric: str
    ) -> dict[str, Any]:
        """The fields of `Row` with the published number; none if there is none. See `value`."""
        value = self.value(method, optimised, source, target, metric)
        if value is None:
            return {}
        return {"paper_value": value[0], "paper_std": value[1], "paper_dataset": self.dataset}


# Tables 4 (anchors of Word2Vec sought) and 5 (those of FastText); Table 1 is the part of Table 4
# between different spaces. FastText is the source here, Word2Vec the target.
WORDS = Published(
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
IMAGES = Published(
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


def published(experiment: str) -> Published:
    """The paper's numbers that stand beside an experiment's."""
    return IMAGES if experiment == "vision" else WORDS


def tables(rows: Sequence[Row], *, num_anchors: int, failed: Sequence[str] = ()) -> dict[str, str]:
    """Title -> Markdown: retrieval between different spaces, a table for each direction."""
    tables = {}
    for (optimised, _, source, target), shown in _directions(rows).items():
        if source != target:
            table = pivot(map(_line_of, shown), lines=LINES, paper=True, paper_digits=2)
            title = f"{source} -> {target}, anchors of {optimised} sought"
            tables[title] = f"{table}\n\n{caption(shown[0], num_anchors)}"
    return tables | failures(failed) | rates(rows)


def tables_within(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> Markdown: retrieval within each space, by its relative vectors."""
    return {
        f"Within {source}, anchors of {optimised} sought ({dataset})": pivot(
            select(shown, representation="relative"), lines=LINES, paper=True, paper_digits=2
        )
        for (optimised, dataset, source, target), shown in _directions(rows).items()
        if source == target
    }


def _directions(rows: Sequence[Row]) -> dict[tuple[str, str, str, str], list[Row]]:
    """(optimised, dataset, source, target) -> rows; those of one optimised space together."""
    directions = {
        optimised: {} for optimised in dict.fromkeys(row.get("optimised") for row in rows)
    }
    for row in rows:
        if row.get("representation") == "search":
            continue
        key = (row.dataset, row.source, row.target)
        directions[row.get("optimised")].setdefault(key, []).append(row)
    return {(o, *key): rows for o, each in directions.items() for key, rows in each.items()}


def _line_of(row: Row) -> Row:
    """The row with the method and the anchors that its table line shows."""
    match row.get("representation"):
        case "mapped":
            return dataclasses.replace(row, anchors="own map")
        case "absolute":  # the same for every method
            return dataclasses.replace(row, method="absolute")
    return row


def caption(row: Row, num_anchors: int) -> str:
    """One line on the data and the task."""
    paper = published(row.experiment)
    layers = ", two layers of one model" if row.dataset == "minilm -> minilm_input" else ""
    proxy = f", proxies for {paper.proxy_for}" if row.proxy else ""
    sizes = f"{row.num_items:,} items, {row.num_pairs} known pairs, {num_anchors} anchors"
    runs = f"mean ± std over {row.num_runs} random runs" if row.num_runs > 1 else "one random run"
    beside = "" if row.quick else f" Paper: {paper.dataset}."
    return f"{row.dataset}{layers}{proxy}; {sizes}; {runs}.{beside}"


class Drawn(NamedTuple):
    """What the figures of a pair of spaces show.

    Attributes:
      names: of source and target.
      sought: name of the space whose anchors were sought.
      source: preprocessed rows.
      target: preprocessed rows; row i of both is the same item.
      tasks: method -> names of its tasks, one for each random seed.
    """

    names: tuple[str, str]
    sought: str
    source: Float[Array, "n d_source"]
    target: Float[Array, "n d_target"]
    tasks: Mapping[str, Sequence[str]]


def figures(drawn: Drawn, groups: Mapping[str, list[int]], work: Workdir) -> dict[str, Figure]:
    """relative_spaces, as in the paper's Table 1; the `groups` of rows are coloured."""
    figures = {}
    source, target = drawn.names
    items = f"{len(drawn.source):,} items"
    title = f"{source} and {target}, {items}, anchors of {drawn.sought} sought"
    panels = _relative_panels(drawn, work)
    if panels and groups:
        heading = f"Relative spaces by PCA: {title}"
        figures["relative_spaces"] = scatter_grid(panels, drawn.names, groups, heading)
    return figures


def _relative_panels(
    drawn: Drawn, work: Workdir
) -> dict[str, tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "n k"]]]:
    """Relative rows of both spaces over the anchors of each method's first random run."""
    panels = {}
    source, target = np.asarray(drawn.source), np.asarray(drawn.target)
    for method in ("gt", "seed", *PUBLISHED_METHOD):
        if method in drawn.tasks:
            arrays = read_arrays(work.path / f"anchors/{drawn.tasks[method][0]}.npz")
            vectors, rows = arrays["target_vectors"], arrays["source_rows"]
            if drawn.sought == drawn.names[1]:
                anchors = source[rows], vectors
            else:
                anchors = vectors, target[rows]
            panels[METHOD_TITLES[method]] = unit(source @ anchors[0].T), unit(target @ anchors[1].T)
    return panels


def word_groups(
    chosen: Sequence[str], words: Sequence[str], vectors: Float[np.ndarray, "n d"]
) -> dict[str, list[int]]:
    """The nearest words of each chosen one that is in the vocabulary, or else of the first five."""
    rows = [words.index(word) for word in chosen if word in words] or list(range(5))
    space = _preprocessed(vectors)
    nearest = np.argsort(-space[rows] @ space.T, axis=1, kind="stable")[:, :NEIGHBOURS]
    return {words[row]: members for row, members in zip(rows, nearest.tolist(), strict=True)}


def class_groups(
    labels: Int[np.ndarray, " n"], vectors: Float[np.ndarray, "n d"]
) -> dict[str, list[int]]:
    """The rows of each class that are nearest to its mean."""
    space = _preprocessed(vectors)
    groups = {}
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        typical = np.argsort(-space[rows] @ space[rows].mean(axis=0), kind="stable")
        groups[str(label)] = rows[typical[:NEIGHBOURS]].tolist()
    return groups


def _preprocessed(vectors: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """`common.linear.preprocess` by NumPy: nothing is compiled for a figure."""
    rows = unit(vectors)
    return unit(rows - rows.mean(axis=0))
