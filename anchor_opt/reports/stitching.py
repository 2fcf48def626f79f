"""Tables and figures of zero-shot stitching, and the paper's numbers.

In a row `source` is the encoder, which gives the test vectors, and `target` the decoder, on whose
vectors the head was trained. Labels: `head`, its form; `representation`, relative or absolute;
`optimised`, the space whose anchors are sought, and `given`, the other one; `num_train`, training
texts of the decoder; `num_unlabelled`, unlabelled texts of each space, and `shared`, those of them
that both have.
"""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from anchor_opt.reports.searches import PUBLISHED_METHOD, failures, is_printed, titled
from common.run.figures import COLOURS, MARKERS, legend_below, within
from common.run.records import Record
from common.run.results import TITLES, Published, Row, frame, markdown, pivot, plus_minus, select

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
# The paper's row of its method stands beside the published algorithm and beside ours.
_PAPER_ROWS = {"gt": "gt", "seed": "seed"} | dict.fromkeys(PUBLISHED_METHOD, "ao")

LINES = {"given": "Anchors given", "optimised": "Anchors sought", "target": "Head trained on"}
NOTES = (
    "The head is trained on the vectors of one encoder and tested on those of the other one, or of "
    "the same. F1 is weighted by class size; MAE is of the class index, where classes have an "
    "order (with two classes, the error rate); MRR is of the training texts across the "
    "relative spaces. Head published: that of the paper's code, which normalises features over the "
    "whole test set; inductive: with a LayerNorm instead, so that each text is classified "
    "independently. absolute: without anchors, only between spaces of one dimension. Least squares "
    "on the truth: anchors fitted to the true pairs. discrete: each anchor replaced by the "
    "nearest of the texts among which it was sought (Algorithm 1, line 10)."
)


def published(row: Row, config: Mapping[str, Any]) -> Published | None:
    """The paper's number where anchors are sought, which it prints for English and Spanish."""
    del config
    numbers = _TABLE_6.get((_PAPER_ROWS.get(row.method), row.metric))
    if numbers is None or row.get("representation") != "relative":
        return None
    direction = row.target == row.get("optimised"), row.source == row.get("optimised")
    return Published(*numbers[_DIRECTIONS.index(direction)], PAPER_DATASET)


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown: a line for each pair and direction, a column for each method."""
    rows = record.rows
    crossed = [row for row in rows if row.source != row.target]
    within = [row for row in rows if row.source == row.target and row.get("optimised")]
    first, *others = record.config["heads"]
    shown = [  # title, rows, metric, head, and whether they are of discrete anchors
        ("F1 on the other encoder", crossed, "f1", first, False),
        ("F1 on the other encoder, discrete anchors", crossed, "f1", first, True),
        ("MAE on the other encoder", crossed, "mae", first, False),
        ("F1 on the same encoder", within, "f1", first, False),
        *(("F1 on the other encoder", crossed, "f1", head, False) for head in others),
    ]
    tables = {
        f"{title}, head {head}": _by_method(select(chosen, metric=metric, head=head), discrete)
        for title, chosen, metric, head, discrete in shown
    }
    tables["MRR of the training texts"] = _by_method(select(crossed, metric="mrr"), False)
    tables = {title: table for title, table in tables.items() if table}
    tables[next(iter(tables))] += f"\n\n{_caption(crossed, record.config['num_anchors'])}"
    if not rows[0].quick:
        tables[f"The paper: {PAPER_DATASET}"] = _paper()
    return tables | failures(record.failed) | {"Notes": NOTES}


def _by_method(rows: Sequence[Row], discrete: bool) -> str:
    """Rows with or without discrete anchors; empty if there are none."""
    shown = [row for row in rows if (row.anchors == "discrete") == discrete or is_printed(row)]
    return pivot(titled(shown), lines=LINES, columns="title") if shown else ""


def _paper() -> str:
    """Table 6 of the paper; its method is AO."""
    body = []
    for place, (decoder, encoder) in enumerate(itertools.product(("en", "es"), repeat=2)):
        values = [value[place] for value in _TABLE_6.values()]
        body.append([decoder, encoder, *(plus_minus(*value, digits=2) for value in values)])
    header = [f"{method.upper()}: {TITLES[metric]}" for method, metric in _TABLE_6]
    return markdown(("Decoder", "Encoder", *header), body)


def _caption(rows: Sequence[Row], num_anchors: int) -> str:
    row = next(row for row in rows if row.metric == "f1")
    runs = f"{row.num_runs} random runs" if row.num_runs > 1 else "one random run"
    anchors = "the training texts"
    if texts := row.get("num_unlabelled"):
        anchors = (
            f"{texts:,} {'other messages' if row.dataset == 'messages' else 'sentences of reviews'}"
            f" for each encoder, {row.get('shared'):,} of them in both"
        )
    return (
        f"{row.dataset}{', in the place of Amazon reviews' if row.proxy else ''}: "
        f"{row.get('num_train'):,} training and {row.num_items:,} test texts; {num_anchors} "
        f"anchors, {row.num_pairs} of them in known pairs, from {anchors}; mean and standard "
        f"deviation over {runs}."
    )


def figures(record: Record) -> dict[str, Figure]:
    """`f1`: for each pair the published head's F1 by method, in both directions."""
    wanted = {"metric": "f1", "head": "published", "representation": "relative"}
    shown = [
        row
        for row in select(record.rows, **wanted)
        if row.source != row.target and (row.anchors != "discrete" or is_printed(row))
    ]
    if not shown:
        return {}
    rows = frame(titled(shown))
    titles = list(dict.fromkeys(rows["title"]))[::-1]  # the first one is the highest
    pairs = rows.groupby(["given", "optimised"], sort=False)
    columns = min(3, len(pairs))
    lines = -(-len(pairs) // columns)
    size = 2.6 + 2.8 * columns, (0.5 + 0.3 * len(titles)) * lines + 1.2
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).flat
    for ((given, sought), of_pair), axis in zip(pairs, axes, strict=False):
        for place, trained in enumerate(("given", "optimised")):
            line = of_pair[of_pair["target"] == of_pair[trained]]
            heights = [titles.index(title) + 0.15 - 0.3 * place for title in line["title"]]
            label = f"head trained where the anchors are {('given', 'sought')[place]}"
            style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": "", "label": label}
            errors = within(line["mean"].tolist(), line["std"].tolist(), (0, 1))
            axis.errorbar(line["mean"], heights, xerr=errors, ms=5, capsize=2, **style)
        axis.set_title(f"{Path(given).stem} and {Path(sought).stem}", fontsize="medium")
        axis.set_yticks(range(len(titles)), titles)
        axis.set_xlabel("weighted F1")
        axis.label_outer()
        axis.set_xlim(0, 1)
        axis.grid(axis="y", color="0.9")
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes:  # without a pair
        axis.set_axis_off()
    figure.suptitle(f"A head of one encoder tested on the other ({rows['dataset'][0]})")
    legend_below(figure, 2)
    return {"f1": figure}
