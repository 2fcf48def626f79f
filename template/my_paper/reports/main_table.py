"""Table 1: accuracy of the nearest class mean, the paper's number beside ours."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from common.run.records import Record
from common.run.results import Published, Row, pivot

PAPER = Published(0.90)  # Table 1 of the (made-up) paper, on its own digits


def published(row: Row, config: Mapping[str, Any]) -> Published | None:
    """The paper's number beside a row."""
    del config
    return PAPER if row.metric == "accuracy" else None


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown."""
    rows = record.rows
    lines = {"method": "Method", "dataset": "Data"}
    return {"Table 1": pivot(rows, lines=lines, published=partial(published, config=record.config))}
