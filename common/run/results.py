"""Rows of results, from the measurement to the page, and tables of them in Markdown."""

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from common.run.workdir import Workdir

if TYPE_CHECKING:
    import pandas as pd

TITLES = {  # headers of the metrics in tables
    "jaccard": "Jaccard",
    "mrr": "MRR",
    "cosine": "Cosine",
    "p_at_1": "P@1",
    "p_at_5": "P@5",
    "p_at_10": "P@10",
    "f1": "F1",
    "mae": "MAE",
    "accuracy": "Accuracy",
    "knn_accuracy": "kNN accuracy",
    "distortion": "Distortion",
    "spearman": "Spearman",
    "l2": "l2",
}
QUICK = (
    "**QUICK**: a run on little data, to try the command. Its numbers say nothing about a method, "
    "and no published number stands beside them."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One metric of one method, in one random run or averaged over several.

    Attributes:
      metric: `jaccard`, `mrr`, `cosine`, `p_at_1`, `accuracy` and so on; a fraction, not a percent.
      mean: over the random runs, or the value of one; NaN if it is not defined.
      std: sample standard deviation (n - 1) over the random runs; 0 for a single run.
      random_seed: None if it is an average over several.
      source: the space of the queries, or that is mapped; `target` is searched, or mapped to.
      anchors: `continuous` (any vectors) or `discrete` (items of the space); None without anchors.
      num_items: number of words, images, texts or nodes; `num_pairs` of known pairs.
      dim: dimension of the vectors, or number of coordinates of an item.
      proxy: whether the data replace those of the paper, which are not available.
      sweep_over: name of the config value that a sweep varies; None without a sweep.
      labels: what else distinguishes the rows of an experiment, for instance
        `{"head": "published"}`; documented in the package's report module.
    """

    experiment: str
    dataset: str
    method: str
    metric: str
    mean: float
    std: float = 0.0
    num_runs: int = 1
    random_seed: int | None = None
    source: str | None = None
    target: str | None = None
    anchors: str | None = None
    num_items: int | None = None
    num_pairs: int | None = None
    dim: int | None = None
    proxy: bool = False
    sweep_over: str | None = None
    sweep_value: float | str | None = None
    quick: bool = False
    labels: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def get(self, name: str) -> Any:
        """The field or label of this name; None if the row has neither."""
        return getattr(self, name) if name in FIELDS else self.labels.get(name)


FIELDS = tuple(field.name for field in dataclasses.fields(Row))


class Published(NamedTuple):
    """A number that a source prints, with its deviation if it has one, and the data it is of."""

    value: float
    std: float | None = None
    dataset: str = ""

    def measured_on(self) -> str:
        """How many items, or what part of its data, the source measured on; empty if not known."""
        return self.dataset.rpartition(", ")[2]


Lookup = Callable[[Row], Published | None]  # the number that a source prints beside a row


def averaged(rows: Iterable[Row]) -> list[Row]:
    """Mean and sample deviation over the random seeds, of rows that differ in nothing else.

    Of two rows that differ in their value alone the last one counts. The order is the first one's.
    """
    groups: dict[str, dict[int | None, Row]] = {}
    for row in rows:
        groups.setdefault(_about(row), {})[row.random_seed] = row
    averages = []
    for first, *others in (list(group.values()) for group in groups.values()):
        values = [first.mean, *(row.mean for row in others)]
        mean, std = np.mean(values), np.std(values, ddof=1) if others else 0.0
        about = {"num_runs": len(values), "random_seed": None}
        averages.append(dataclasses.replace(first, mean=float(mean), std=float(std), **about))
    return averages


def _about(row: Row) -> str:
    """What a row says but for the random seed and what was measured."""
    return json.dumps(fields(dataclasses.replace(row, mean=0.0, random_seed=None)), sort_keys=True)


def fields(row: Row) -> dict[str, Any]:
    """The fields of a row that are not None, JSON-serialisable."""
    return {name: value for name in FIELDS if (value := getattr(row, name)) is not None}


def from_fields(values: Mapping[str, Any]) -> Row:
    """The row whose fields were stored as JSON, where a number that is not defined is None."""
    given = {name: value for name, value in values.items() if value is not None}
    if "mean" not in given:
        given |= {"mean": math.nan, "std": math.nan}
    return Row(**given)


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """The rows whose fields or labels have the given values."""
    return [row for row in rows if all(row.get(name) == x for name, x in wanted.items())]


def frame(rows: Iterable[Row]) -> "pd.DataFrame":
    """A column for each field and label of the rows, and `row`, the rows themselves, for `pivot`.

    Labels whose name is that of a field have `label_` before it.
    """
    import pandas as pd

    lines = [
        {name: getattr(row, name) for name in FIELDS if name != "labels"}
        | {f"label_{name}" if name in FIELDS else name: x for name, x in row.labels.items()}
        | {"row": row}
        for row in rows
    ]
    return pd.DataFrame(lines, columns=None if lines else [*FIELDS, "row"], dtype=object)


def points(rows: "pd.DataFrame", lines: str, over: str) -> dict[str, list[tuple]]:
    """Each value of a column -> (value of `over`, mean, std) of its rows, for figures."""
    return {
        str(name): list(zip(group[over], group["mean"], group["std"], strict=True))
        for name, group in rows.groupby(lines, sort=False)
    }


def marked(work: Workdir, table: str) -> str:
    """The table, below a line that says that the run is a quick one, if it is."""
    return f"{QUICK}\n\n{table}" if work.quick else table


def plus_minus(mean: float | None, std: float | None, digits: int = 3) -> str:
    """`.491 ± .002`; `.491` without a deviation; a dash without a mean."""
    if mean is None:
        return "-"
    known = [mean] if std is None else [mean, std]
    return " ± ".join(re.sub(r"^(-?)0\.", r"\1.", f"{x:z.{digits}f}") for x in known)


def mean_and_deviation(row: Row, digits: int = 3) -> str:
    """Mean and standard deviation of a row; the mean alone for a single run."""
    return plus_minus(row.mean, row.std if row.num_runs > 1 else None, digits)


def pivot(
    rows: "Iterable[Row] | pd.DataFrame",
    *,
    lines: Mapping[str, str],
    columns: str = "metric",
    published: Lookup | None = None,
    digits: int = 3,
    paper_digits: int = 3,
    titles: Mapping[Any, str] = MappingProxyType({}),
) -> str:
    """A Markdown table: a line for each combination of some fields, a column for each value.

    `lines`: field or label -> title of its column; the values of `columns` become columns, with
    the headers of `titles` and `TITLES`. A `frame` may have other words in these columns than its
    rows. Numbers of the paper, by `published`, get columns of their own, but for quick runs; the
    headers say how many items ours are of, and what theirs are.
    """
    import pandas as pd

    titles = TITLES | dict(titles)
    table = rows if isinstance(rows, pd.DataFrame) else frame(rows)
    table = table.reindex(columns=[*lines, columns, "row"])  # a label may be in no row
    cells: dict[tuple, dict[Any, Row]] = {}
    for *key, column, row in table.where(table.notna(), None).itertuples(index=False):
        cells.setdefault(tuple(key), {})[column] = row
    header = {v: titles.get(v, str(v)) for of_line in cells.values() for v in of_line}
    body = [
        ["-" if part is None else str(part) for part in key]
        + [mean_and_deviation(row, digits) if row else "-" for row in map(of_line.get, header)]
        for key, of_line in cells.items()
    ]
    papers = []
    for value in list(header):
        column = [of_line.get(value) for of_line in cells.values()]
        numbers = [
            published(row) if published and row and not row.quick else None for row in column
        ]
        if not any(numbers):
            continue
        for line, number in zip(body, numbers, strict=True):
            line.append(plus_minus(number.value, number.std, paper_digits) if number else "-")
        measured_on = {number.measured_on() for number in numbers if number}
        where = f" ({measured_on.pop()})" if len(measured_on) == 1 and any(measured_on) else ""
        papers.append(f"Paper{where}: {header[value]}")
        sizes = {row.num_items for row in column if row}
        if where and len(sizes) == 1 and any(sizes) and "num_items" not in lines:
            header[value] += f" ({sizes.pop():,} items)"
    return markdown([*lines.values(), *header.values(), *papers], body)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose columns are padded to equal width, for terminals."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]

    def text(cells):
        return "| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([text(lines[0]), rule, *map(text, lines[1:])])


def joined(tables: Mapping[str, str]) -> str:
    """The tables as Markdown, each under its title."""
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in tables.items())
