"""Tables and figures of zero-shot stitching, and the paper's numbers.

In a row `source` is the encoder, which gives the test vectors, and `target` the decoder, on whose
vectors the head was trained. Labels: `head`, its form; `representation`, relative or absolute;
`optimised`, the space whose anchors are sought; `num_train`, training texts of the decoder.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from anchor_opt.runner import NEIGHBOURS, PUBLISHED_METHOD, ROLES, Grid, failures, relative_panels
from common.data.labelled_vectors import LabelledVectors
from common.report import Row, bars, pivot, scatter_grid, select, summarise
from common.retrieval import top_k
from common.workdir import Workdir

# Table 6, the same in both arXiv versions; Table 2 is its part between the languages. The data are
# Amazon reviews in English (en) and Spanish (es), five classes; weighted F1 and MAE of the class,
# five random runs. The anchors of English are sought, those of Spanish are given (A.2).
PAPER_DATASET = "Amazon reviews en / es, 5 classes"
_TABLE_6 = {  # (row, metric) -> mean and standard deviation of each of the _DIRECTIONS
    ("gt", "f1"): ((0.64, 0.01), (0.51, 0.01), (0.50, 0.02), (0.60, 0.01)),
    ("gt", "mae"): ((0.43, 0.01), (0.67, 0.02), (0.72, 0.04), (0.45, 0.01)),
    ("seed", "f1"): ((0.50, 0.01), (0.44, 0.01), (0.41, 0.01), (0.48, 0.01)),
    ("seed", "mae"): ((0.69, 0.01), (0.80, 0.01), (0.92, 0.02), (0.70, 0.01)),
    ("ao", "f1"): ((0.62, 0.01), (0.48, 0.01), (0.46, 0.01), (0.61, 0.01)),
    ("ao", "mae"): ((0.44, 0.01), (0.70, 0.02), (0.76, 0.02), (0.44, 0.01)),
}
# (decoder, encoder): whether its anchors are sought, as those of English are.
_DIRECTIONS = ((True, True), (True, False), (False, True), (False, False))
# The paper's row of its method stands beside the published algorithm and beside our bootstrap.
_PAPER_ROWS = {"gt": "gt", "seed": "seed"} | dict.fromkeys(PUBLISHED_METHOD, "ao")

LINES = {"head": "Head", "method": "Method", "anchors": "Anchors"}
NOTES = (
    "Decoder: the encoder on whose vectors the head was trained; encoder: the one that gives the "
    "test vectors. F1 is weighted by class size; MAE is of the class index (with two classes, the "
    "error rate); MRR is of the training texts across the relative spaces. Head published: that of "
    "the paper's code, which normalises features over the whole test set; inductive: with a "
    "LayerNorm instead, so that each text is classified independently. absolute: without anchors, "
    "only between spaces of one dimension. lstsq_truth: least squares on the true pairing. "
    "discrete: each anchor replaced by its nearest training text (Algorithm 1, line 10). The "
    "paper's row of its method stands beside algorithm1_printed and algorithm1, the published "
    "method as printed and with a small start, and beside bootstrap, which is ours."
)


def published(
    method: str, decoder_optimised: bool, encoder_optimised: bool, metric: str
) -> tuple[float, float] | None:
    """The paper's mean and standard deviation, or None if it has none.

    A head was trained on the decoder's space, whose anchors were sought or given, and tested on
    vectors of the encoder's.
    """
    values = _TABLE_6.get((_PAPER_ROWS.get(method), metric))
    return values and values[_DIRECTIONS.index((decoder_optimised, encoder_optimised))]


def named(row: Row, grid: Grid, spaces: Mapping[str, LabelledVectors]) -> Row:
    """A row with names of spaces in the place of roles, and the paper's value beside it."""
    encoder, decoder, optimised = row.source, row.target, row.get("optimised")
    value, names = None, {}
    if optimised:
        value = published(row.method, decoder == optimised, encoder == optimised, row.metric)
        names = {"optimised": grid.name(optimised)}
    return dataclasses.replace(
        row,
        source=grid.name(encoder),
        target=grid.name(decoder),
        num_items=len(spaces[encoder].test),
        dim=spaces[encoder].train.shape[1],
        paper_value=value and value[0],
        paper_std=value and value[1],
        paper_dataset=value and PAPER_DATASET,
        labels=row.labels | names | {"num_train": len(spaces[decoder].train)},
    )


def tables(rows: Sequence[Row], *, num_anchors: int, failed: Sequence[str] = ()) -> dict[str, str]:
    """Title -> Markdown: stitching between different spaces, the mean over both directions."""
    found = {}
    for optimised, shown in _by_optimised(rows).items():
        crossed = [row for row in shown if row.source != row.target]
        title = f"Stitching, mean of both directions, anchors of {optimised} sought"
        caption = _caption(crossed, num_anchors)
        found[title] = f"{pivot(_means(crossed), lines=LINES)}\n\n{caption}"
    return found | failures(failed)


def tables_by_direction(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> Markdown: a table for each decoder and encoder, stitched ones first."""
    found = {}
    for optimised, shown in _by_optimised(rows).items():
        directions = dict.fromkeys((row.target, row.source) for row in shown if row.metric == "f1")
        for decoder, encoder in sorted(directions, key=lambda spaces: spaces[0] == spaces[1]):
            title = f"Decoder {decoder}, encoder {encoder}, anchors of {optimised} sought"
            cells = select(shown, target=decoder, source=encoder)
            cells = [row for row in cells if row.metric != "mrr"]
            found[title] = pivot(cells, lines=LINES, paper=True, paper_digits=2)
    return found


def _by_optimised(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Space whose anchors are sought -> its rows, and those of the absolute vectors."""
    names = filter(None, dict.fromkeys(row.get("optimised") for row in rows))
    return {n: [row for row in rows if row.get("optimised") in (n, None)] for n in names}


def _caption(rows: Sequence[Row], num_anchors: int) -> str:
    row = next(row for row in rows if row.metric == "f1")
    proxy = ", a proxy for Amazon reviews and two RoBERTas" if row.proxy else ""
    runs = f"{row.num_runs} random runs" if row.num_runs > 1 else "one random run"
    return (
        f"Ours: {row.dataset}{proxy}; {row.get('num_train'):,} training and {row.num_items:,} test "
        f"texts, {row.num_pairs} known pairs, {num_anchors} anchors, {runs}. "
        f"Paper: {PAPER_DATASET}, English in the place of {row.get('optimised')}."
    )


def _means(rows: Sequence[Row]) -> list[Row]:
    """Rows averaged over the two directions; each head's with the MRR, which depends on no head."""
    forms = dict.fromkeys(row.get("head") for row in rows if row.get("head"))
    measured = [
        {"method": row.method, "anchors": row.anchors, "metric": row.metric, "value": row.mean}
        | {"labels": {"head": form}}
        for form in forms
        for row in rows
        if row.get("head") in (form, None)
    ]
    means = summarise(measured, experiment=rows[0].experiment, dataset=rows[0].dataset)
    # The deviation between the two directions is not one between random runs.
    return [dataclasses.replace(row, num_runs=1) for row in means]


def figures(
    rows: Sequence[Row], grid: Grid, work: Workdir, spaces: Mapping[str, LabelledVectors]
) -> dict[str, Figure]:
    """`f1`, and `relative_spaces` if both spaces hold the same texts; `spaces` by their roles."""
    role = grid.optimise[0]
    title = " and ".join(Path(grid.name(role)).stem for role in ROLES)
    title += f", anchors of the {role} sought"
    crossed = [(grid.source, grid.target), (grid.target, grid.source)]
    directions = [*crossed, (grid.source, grid.source), (grid.target, grid.target)]
    panels: dict[str, dict[str, list]] = {}
    for row in select(rows, metric="f1", optimised=grid.name(role)):
        if row.anchors != "discrete":
            methods = panels.setdefault(f"weighted F1, head {row.get('head')}", {})
            values = methods.setdefault(row.method, [(np.nan, 0.0)] * len(directions))
            values[directions.index((row.target, row.source))] = row.mean, row.std
    groups = [f"{Path(decoder).stem}\n→ {Path(encoder).stem}" for decoder, encoder in directions]
    found = {"f1": bars(panels, groups, f"Trained on → tested on: {title}")}
    if spaces["source"].anchors is None:
        train = {name: space.train for name, space in spaces.items()}
        test = {name: space.test for name, space in spaces.items()}
        if panels := relative_panels(grid, work, role, train, test):
            near = top_k(test["source"][:6], test["source"], NEIGHBOURS)[1]
            groups = {f"near text {i}": list(rows) for i, rows in enumerate(np.asarray(near))}
            found["relative_spaces"] = scatter_grid(
                panels,
                (grid.source, grid.target),
                groups,
                f"Relative spaces of test texts: {title}",
            )
    return found
