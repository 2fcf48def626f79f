"""Rows of results, from the measurement to the page, and tables of them in Markdown."""

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from common.run.workdir import Workdir

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


PUBLISHED = ("paper_value", "paper_std", "paper_dataset")  # fields of `Row`
QUICK = (
    "**QUICK**: a run on little data, to try the command. Its numbers say nothing about a method, "
    "and no published number stands beside them."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One metric of one method, in one random run or averaged over several.

    Attributes:
      experiment: name of the config's experiment.
      dataset: data on which the metric was measured.
      method: name of the method.
      metric: `jaccard`, `mrr`, `cosine`, `p_at_1`, `accuracy` and so on; a fraction, not a percent.
      mean: mean over the random runs, or the value of one; NaN if it is not defined.
      std: sample standard deviation (n - 1) over the random runs; 0 for a single run.
      num_runs: number of random runs.
      random_seed: of the random run; None if it is an average over several.
      source: the space of the queries, or that is mapped; None if there is none.
      target: the space that is searched, or mapped to; None if there is none.
      anchors: `continuous` (any vectors) or `discrete` (items of the space); None without anchors.
      num_items: number of words, images, texts or nodes.
      num_pairs: number of known pairs.
      dim: dimension of the vectors, or number of coordinates of an item.
      proxy: whether the data replace those of the paper, which are not available.
      paper_value: the published number to compare with; None if there is none.
      paper_std: its published standard deviation.
      paper_dataset: data on which the paper measured it.
      sweep_over: name of the config value that a sweep varies; None without a sweep.
      sweep_value: that value in this row.
      quick: whether it is of a quick run (`--config.quick`), beside which no published number
        stands: `paper_value`, `paper_std` and `paper_dataset` of such a row are None.
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
    paper_value: float | None = None
    paper_std: float | None = None
    paper_dataset: str | None = None
    sweep_over: str | None = None
    sweep_value: float | str | None = None
    quick: bool = False
    labels: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.quick:
            for name in PUBLISHED:
                object.__setattr__(self, name, None)

    def get(self, name: str) -> Any:
        """The field or label of this name; None if the row has neither."""
        return getattr(self, name) if name in FIELDS else self.labels.get(name)

    def matches(self, **wanted: Any) -> bool:
        """Whether each of the named fields or labels has the given value."""
        return bool(select([self], **wanted))


FIELDS = tuple(field.name for field in dataclasses.fields(Row))


def averaged(rows: Iterable[Row]) -> list[Row]:
    """Mean and sample deviation over the random seeds, of rows that differ in nothing else.

    Args:
      rows: each of one random run.

    Returns:
      Rows without a random seed, in the order in which they first appear.
    """
    import pandas as pd  # half a second, which --help and errors of flags do not need

    rows = list(rows)
    table = pd.DataFrame({"about": [_about(row) for row in rows], "value": [r.mean for r in rows]})
    groups = table.groupby("about", sort=False)["value"]
    # A value that is not defined leaves no mean; a single one has no deviation.
    statistics = groups.apply(lambda x: (x.mean(skipna=False), x.std(skipna=False), len(x)))
    first = {about: row for about, row in zip(table["about"][::-1], rows[::-1], strict=True)}
    return [
        dataclasses.replace(
            first[about], mean=mean, std=0.0 if n == 1 else std, num_runs=n, random_seed=None
        )
        for about, (mean, std, n) in statistics.items()
    ]


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
    of_fields = [(name, wanted.pop(name)) for name in FIELDS if name in wanted]
    return [
        row
        for row in rows
        if all(getattr(row, name) == value for name, value in of_fields)
        and all(row.labels.get(name) == value for name, value in wanted.items())
    ]


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
    rows: Iterable[Row],
    *,
    lines: Mapping[str, str],
    columns: str = "metric",
    paper: bool = False,
    digits: int = 3,
    paper_digits: int = 3,
    titles: Mapping[Any, str] = MappingProxyType({}),
) -> str:
    """A Markdown table: a line for each combination of some fields, a column for each value.

    Args:
      rows: the results.
      lines: field or label -> title of its column, `{"method": "Method"}` for instance.
      columns: the field or label whose values become columns.
      paper: whether columns with the paper's numbers are added. The headers say how many items
        ours are of, and what the paper measured on.
      digits: digits after the point.
      paper_digits: digits after the point of the paper's numbers.
      titles: value of `columns` -> header of its column, in addition to `TITLES`.
    """
    titles = TITLES | dict(titles)
    cells: dict[tuple, dict[Any, Row]] = {}
    for row in rows:
        cells.setdefault(tuple(row.get(name) for name in lines), {})[row.get(columns)] = row
    header = {v: titles.get(v, str(v)) for of_line in cells.values() for v in of_line}
    published = [
        value
        for value in header
        if paper and any(f[value].paper_value is not None for f in cells.values() if value in f)
    ]
    body = []
    for key, of_line in cells.items():
        line = ["-" if part is None else str(part) for part in key]
        for row in map(of_line.get, header):
            line.append(mean_and_deviation(row, digits) if row else "-")
        for row in map(of_line.get, published):
            line.append(plus_minus(row.paper_value, row.paper_std, paper_digits) if row else "-")
        body.append(line)
    papers = []
    for value in published:
        of_column = [of_line[value] for of_line in cells.values() if value in of_line]
        measured_on = {published_on(row) for row in of_column if row.paper_value is not None}
        where = f" ({measured_on.pop()})" if len(measured_on) == 1 and any(measured_on) else ""
        papers.append(f"Paper{where}: {header[value]}")
        sizes = {row.num_items for row in of_column}
        if where and len(sizes) == 1 and any(sizes) and "num_items" not in lines:
            header[value] += f" ({sizes.pop():,} items)"
    return markdown([*lines.values(), *header.values(), *papers], body)


def published_on(row: Row) -> str:
    """How many items, or what part of its data, the paper measured on; empty if not known."""
    return (row.paper_dataset or "").rpartition(", ")[2]


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
