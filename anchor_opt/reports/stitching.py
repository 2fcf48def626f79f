"""Tables and figures of zero-shot stitching, and the paper's numbers.

In a row `source` is the encoder, which gives the test vectors, and `target` the decoder, on whose
vectors the head was trained. Labels: `head`, its form; `representation`, relative or absolute;
`optimised`, the space whose anchors are sought, and `given`, the other one; `num_train`, training
texts of the decoder; `num_unlabelled`, unlabelled texts of each space, and `shared`, those of them
that both have.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from anchor_opt.reports.searches import METHOD_TITLES, PUBLISHED_METHOD, failures
from common.run.figures import small_multiples
from common.run.results import TITLES, Row, markdown, pivot, plus_minus, select

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

LINES = {"given": "Anchors given", "optimised": "Anchors sought", "target": "Head trained on"}
NOTES = (
    "The head is trained on the vectors of one encoder and tested on those of the other one, or of "
    "the same. F1 is weighted by class size; MAE is of the class index, where classes have an "
    "order (with two classes, the error rate); MRR is of the training texts across the "
    "relative spaces. Head published: that of the paper's code, which normalises features over the "
    "whole test set; inductive: with a LayerNorm instead, so that each text is classified "
    "independently. absolute: without anchors, only between spaces of one dimension. Least squares "
    "on the truth: anchors fitted to the true pairs. discrete: each anchor replaced by the "
    "nearest of the texts among which it was sought (Algorithm 1, line 10). Algorithm 1 is "
    "the published method with a small start; the bootstrap is ours."
)


def published(
    method: str, decoder_sought: bool, encoder_sought: bool, metric: str
) -> dict[str, Any]:
    """Fields of `Row` with the paper's number; none if it has none.

    A head was trained on the decoder's space, whose anchors were sought or given, and tested on
    vectors of the encoder's.
    """
    values = _TABLE_6.get((_PAPER_ROWS.get(method), metric))
    if values is None:
        return {}
    mean, std = values[_DIRECTIONS.index((decoder_sought, encoder_sought))]
    return {"paper_value": mean, "paper_std": std, "paper_dataset": PAPER_DATASET}


def tables(rows: Sequence[Row], *, num_anchors: int, failed: Sequence[str] = ()) -> dict[str, str]:
    """Title -> Markdown: a line for each pair and direction, a column for each method."""
    tables = {}
    crossed = [row for row in rows if row.source != row.target]
    within = [row for row in rows if row.source == row.target and row.get("optimised")]
    forms = dict.fromkeys(row.get("head") for row in rows if row.get("head"))
    for number, form in enumerate(forms):
        for title, shown, discrete, metric in (
            ("F1 on the other encoder", crossed, False, "f1"),
            ("F1 on the other encoder, discrete anchors", crossed, True, "f1"),
            ("MAE on the other encoder", crossed, False, "mae"),
            ("F1 on the same encoder", within, False, "f1"),
        )[: 1 if number else None]:  # of the first head in full
            cells = select(shown, head=form, metric=metric)
            tables[f"{title}, head {form}"] = _by_method(cells, discrete)
    if ranks := _by_method(select(crossed, metric="mrr"), False):
        tables["MRR of the training texts"] = ranks
    tables = {title: table for title, table in tables.items() if table}
    if tables:
        tables[next(iter(tables))] += f"\n\n{_caption(crossed, num_anchors)}"
    if not any(row.quick for row in rows):
        tables[f"The paper: {PAPER_DATASET}"] = _paper()
    return tables | failures(failed)


def _by_method(rows: Sequence[Row], discrete: bool) -> str:
    """Rows with or without discrete anchors; empty if there are none."""
    shown = [row for row in rows if (row.anchors == "discrete") == discrete]
    return pivot(shown, lines=LINES, columns="method", titles=METHOD_TITLES) if shown else ""


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
            f"{texts:,} sentences of reviews for each encoder, {row.get('shared'):,} of them "
            "in both"
        )
    return (
        f"{row.dataset}{', in the place of Amazon reviews' if row.proxy else ''}: "
        f"{row.get('num_train'):,} training and {row.num_items:,} test texts; {num_anchors} "
        f"anchors, {row.num_pairs} of them in known pairs, from {anchors}; mean and standard "
        f"deviation over {runs}."
    )


def figures(rows: Sequence[Row]) -> dict[str, Figure]:
    """`f1`: for each pair the published head's F1 by method, in both directions."""
    panels: dict[str, dict[str, list]] = {}
    crossed = [row for row in select(rows, metric="f1", head="published") if row.get("optimised")]
    for row in crossed:
        if row.source != row.target and row.anchors != "discrete":
            sought = row.get("optimised")
            panel = panels.setdefault(f"{Path(row.get('given')).stem} and {Path(sought).stem}", {})
            decoder = "sought" if row.target == sought else "given"
            line = panel.setdefault(f"trained where the anchors are {decoder}", [])
            line.append((METHOD_TITLES.get(row.method, row.method), row.mean, row.std))
    if not panels:
        return {}
    title = "Zero-shot stitching: a head trained on one encoder, tested on the other"
    return {"f1": small_multiples(panels, {}, "F1 on the other encoder", title)}
