"""What the searches of all records report about themselves, beside what is true."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from anchor_opt.reports.searches import METHOD_TITLES, counted
from common.run.figures import COLOURS, legend_below
from common.run.records import Record, Stated
from common.run.results import markdown, mean_and_deviation, select
from common.spaces import space_pairs

if TYPE_CHECKING:
    import pandas as pd

TRUTH = "orthogonal_truth"  # the reference of maps that are orthogonal
TITLES = METHOD_TITLES | {
    "procrustes": "Orthogonal map of the known pairs",
    TRUTH: "Orthogonal map of the truth",
    "spectral": "Spectral embedding and CCA",
}
OTHER_SPACES = "all others"
DETECTOR_SPACES = "those by which the detector was made"
# Bounds of the stated probabilities, between which the searches are counted.
PROBABILITIES = (0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)
DEVELOPMENT = "minilm -> minilm_input"


def add_references(
    figure: Figure, references: Sequence[Mapping[str, Sequence[tuple[float, float, float]]]]
) -> None:
    """Adds lines without markers to the panels: name -> (value, mean, std), which is not shown."""
    used = {line.get_color() for axis in figure.axes for line in axis.get_lines()}
    free = [colour for colour in COLOURS if colour not in used]
    for axis, lines in zip(figure.axes, references, strict=False):
        for (name, values), colour in zip(lines.items(), free, strict=False):
            places, means, _ = zip(*values, strict=True)
            axis.plot(places, means, color=colour, lw=1.2, zorder=1, label=name)
    figure.legends[0].remove()
    legend_below(figure, 4 if len(references) > 2 else 3)


def side_by_side(
    rows: "pd.DataFrame", lines: Mapping[str, str], columns: Mapping[tuple[str, str], str]
) -> str:
    """A Markdown table of a frame: `lines` as in `pivot`, and (method, metric) -> its column."""
    cells = [
        f"{row.mean:,.0f}" if row.mean >= 10 else mean_and_deviation(row) for row in rows["row"]
    ]
    table = rows.assign(cell=cells).fillna(dict.fromkeys(lines, ""))
    table = table.pivot_table("cell", [*lines], ["method", "metric"], "first", sort=False)
    table = table.reindex(columns=[*columns]).fillna("-").reset_index().astype(str)
    return markdown((*lines.values(), *columns.values()), table.to_numpy().tolist())


def of_all_records(records: Iterable[Record]) -> str:
    """How often self-learning's searches of all records report a wrong success or failure.

    Those between the spaces by which the detector was made are counted apart. The intervals are of
    95% (Clopper and Pearson 1934).
    """
    searched = dict.fromkeys((OTHER_SPACES, DETECTOR_SPACES), np.zeros(4, int))
    for record in records:
        for dataset, *counts in counted(select(record.rows, method="bootstrap")).itertuples():
            parts = space_pairs.file_name(*dataset.split(" -> "))
            failed = [
                name.startswith(f"{parts}-") and "-bootstrap-" in name for name in record.failed
            ]
            made_by = dataset == DEVELOPMENT or dataset.endswith("noisy copy")
            spaces = DETECTOR_SPACES if made_by else OTHER_SPACES
            searched[spaces] = searched[spaces] + [*map(round, counts), sum(failed)]
    body = []
    for spaces, counts in searched.items():
        searches, false_success, false_failure, failed = counts.tolist()
        wrong = failed - false_failure + false_success
        body.append([spaces, f"{searches}", f"{wrong}", _share(false_success, searches)])
        body[-1] += [_share(false_success, wrong), _share(false_failure, searches - wrong)]
    header = ("Spaces", "Searches", "Wrong in truth", "False success", "Of the wrong ones")
    return markdown((*header, "False failure, of the right ones"), body)


def calibration(records: Iterable[Record]) -> str:
    """How many searches succeed of those that state about the same probability of success.

    Searches between the spaces by which the detector was made are left out. The shares have 95%
    intervals (Clopper and Pearson 1934), and the mean squared error of the probabilities (Brier
    1950) stands below, beside that of the share of all.
    """
    development = f"{space_pairs.file_name(*DEVELOPMENT.split(' -> '))}-"
    searches = [
        search
        for record in records
        for search in record.stated
        if "-bootstrap-" in search.part and not search.part.startswith(development)
    ]
    body = []
    for low, high in itertools.pairwise(PROBABILITIES):
        last = high == PROBABILITIES[-1]
        between = [x for x in searches if low <= x.probability and (last or x.probability < high)]
        if between:
            stated = sum(x.probability for x in between) / len(between)
            count = sum(x.succeeded for x in between)
            again = sum("-geometry-" in x.initialization for x in between)
            cells = f"{low:g} to {high:g}", f"{len(between)}", f"{again}", f"{stated:.3f}"
            body.append([*cells, _share(count, len(between))])
    header = ("Stated probability", "Searches", "From the geometry", "Stated, mean", "Succeeded")
    return f"{markdown(header, body)}\n\n{_brier(searches)}" if searches else ""


def _brier(searches: Sequence[Stated]) -> str:
    share = sum(x.succeeded for x in searches) / len(searches)
    error = sum((x.probability - x.succeeded) ** 2 for x in searches) / len(searches)
    return (
        f"Mean squared error of the probabilities: {error:.3f}; of the share of all {share:.2f}: "
        f"{share * (1 - share):.3f}."
    )


def _share(count: int, total: int) -> str:
    """A count, and its share of a total, if there is one, with a 95% interval."""
    if not total:
        return f"{count}"
    from scipy.stats import binomtest  # half a second, which a run does not need

    low, high = binomtest(count, total).proportion_ci()
    return f"{count} ({count / total:.1%}, {low:.1%} to {high:.1%})"
