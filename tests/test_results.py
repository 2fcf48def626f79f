"""Kept runs (docs/keep.py, common/records.py) and the pages that are written from them."""

import dataclasses
import json
import re
import shlex

import numpy as np
import pytest
from PIL import Image

from common import records
from common.errors import UserError
from common.report import Row
from docs import keep, render

SHARED = {"experiment": "e", "dataset": "d", "metric": "mrr", "std": 0.0, "num_runs": 1}


@pytest.mark.parametrize("name", render.names())
def test_a_kept_run_is_rows_of_the_schema_on_its_papers_page(name):
    record = records.read(render.RESULTS, name)
    assert record.rows and all(isinstance(row, Row) for row in record.rows)
    assert all(np.isfinite([row.mean, row.std]).all() for row in record.rows)
    page = render.RESULTS / f"{name.split('/')[0]}.md"
    assert re.search(f"<!-- results:{name}[: ]", page.read_text())


def test_pages_are_what_the_kept_runs_say():
    wrong = [path.name for path, text in render.pages().items() if path.read_text() != text]
    assert not wrong, "run python -m docs.render"


def row(**fields):
    return dataclasses.asdict(Row(**SHARED, **fields))


@pytest.mark.parametrize(
    "rows",
    [
        [row(method="a", mean=0.25), row(method="b", mean=0.5)],
        [row(method="a", mean=0.25, dim=3, labels={"x": 1}), row(method="a", mean=0.5)],
        [row(method="a", mean=0.25, labels={"x": 1, "y": 2}), row(method="a", mean=0.25)],
    ],
)
def test_rows_are_read_as_they_were_kept(rows, tmp_path):
    head = {"command": "c", "finished": "2026-11-22 08:00", "commit": "a", "cores": 1}
    head |= {"seconds": None, "failed": [], "quoted": "", "config": {"a": [1]}}
    (tmp_path / "p").mkdir()
    (tmp_path / "p/n.json").write_text(keep.packed(head, rows))
    record = records.read(tmp_path, "p/n")
    assert [dataclasses.asdict(found) for found in record.rows] == rows
    assert {name: getattr(record, name) for name in head} == head


def test_parts_that_failed_are_named(tmp_path):
    (tmp_path / "parts").mkdir()
    for name, result in (("x", {"notes": {"failed": True}}), ("y", {"notes": {}}), ("z", [1])):
        (tmp_path / "parts" / f"{name}.json").write_text(json.dumps({"crc32": 0, "result": result}))
    assert keep.failed(tmp_path) == ["x"]


RUN = """
import json, pathlib, sys
from PIL import Image
run = pathlib.Path(sys.argv[1].removeprefix("--workdir="))
(run / "parts").mkdir(parents=True)
(run / "results.json").write_text(json.dumps([ROW | {"mean": 0.75}]))
(run / "config.json").write_text("{}")
(run / "table.md").write_text("# Title\\n\\n## First\\n\\n| new |")
Image.new("RGB", (8, 8)).save(run / "mrr.png")
"""


def test_kept_runs_are_made_again_with_their_figures_and_quotes(tmp_path, monkeypatch):
    monkeypatch.setattr(keep, "ROOT", tmp_path)
    monkeypatch.setattr(keep, "_commit", lambda: "new")
    for folder in ("results/p", "figures/p"):
        (tmp_path / "docs" / folder).mkdir(parents=True)
    old = row(method="a", mean=0.25)
    head = {"finished": "2026-11-22 08:00", "cores": 1, "seconds": 3.0, "failed": [], "config": {}}
    head |= {"command": shlex.join(["python", "-c", RUN.replace("ROW", repr(old))])}
    head |= {"quoted": "## First\n\n| old |"}
    for name, commit in (("n", "old"), ("done", "new"), ("other", "old")):
        text = keep.packed(head | {"commit": commit}, [old])
        (tmp_path / f"docs/results/p/{name}.json").write_text(text)
    Image.new("RGB", (2, 2)).save(tmp_path / "docs/figures/p/n-mrr.png")
    keep.all_again(tmp_path / "runs", cores=2, jobs=2, prefix="p/n")
    found = records.read(tmp_path / "docs/results", "p/n")
    assert found.rows[0].mean == 0.75 and found.commit == "new" and found.cores == 2
    assert found.quoted == "## First\n\n| new |" and found.seconds is not None
    assert Image.open(tmp_path / "docs/figures/p/n-mrr.png").size == (8, 8)
    assert {path.name for path in (tmp_path / "runs/p").iterdir()} == {"n", "n.log"}


def test_nothing_is_kept_without_the_named_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(keep, "ROOT", tmp_path)
    (tmp_path / "results.json").touch()
    with pytest.raises(UserError, match=r"no .*mrr\.png: give --figures"):
        keep.keep(tmp_path, "p/n", "", {}, ("mrr",), "")
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_quoted_parts_of_a_table_keep_their_headings():
    table = "## a\n\n|1|\n\nNear b:\n\n|2|\n\n## c\n\nNear:\n\n|3|\n\n## Near d\n\nof e\n\n|4|\n"
    expected = "## a\n\nNear b:\n\n|2|\n\n## c\n\nNear:\n\n|3|\n\n## Near d\n\nof e\n\n|4|"
    assert keep.quoted(table, "Near") == expected


def test_figures_are_compressed_without_a_visible_difference(tmp_path):
    gradient = np.linspace(0, 255, 64 * 64 * 3).reshape(64, 64, 3).astype(np.uint8)
    Image.fromarray(gradient).save(tmp_path / "f.png")
    (tmp_path / "g.png").write_bytes(keep.compressed(tmp_path / "f.png"))
    found = np.asarray(Image.open(tmp_path / "g.png").convert("RGB")).astype(int)
    assert np.abs(found - gradient).max() < 16


def test_config_values_that_have_changed_since_a_run_are_named():
    record = records.read(render.RESULTS, "lpl/nli")
    before = render.outdated(record)
    record.config["delta_gone"] = 3
    record.config["random_seeds"] = [7]
    assert set(render.outdated(record)) - set(before) == {"delta_gone", "random_seeds"}
    for seeds in ("7", '"(7,)"'):
        again = record._replace(command=f"{record.command} --config.random_seeds={seeds}")
        assert set(render.outdated(again)) - set(before) == {"delta_gone"}


def test_filling_a_page_twice_changes_nothing(tmp_path):
    text = "a\n<!-- results:data -->\nstale text\n<!-- end -->\nb"
    filled = render.fill(text, tmp_path / "page.md")
    assert "stale text" not in filled and "multiwordnet" in filled
    assert render.fill(filled, tmp_path / "page.md") == filled
