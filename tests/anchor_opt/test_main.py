"""An experiment through the command line: whole, killed and resumed, and in a run of another."""

import contextlib
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from common.run.results import Row, select
from tests import commands

pytestmark = [pytest.mark.network, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
METHODS = ("gt", "seed", "algorithm1", "bootstrap", "lstsq_truth")
VALUES = {
    "methods": ",".join(METHODS),
    "target": "minilm_input",
    "num_words": 600,
    "num_anchors": 60,
    "num_pairs": 30,
    "algorithm1.steps": 50,
    "bootstrap.search_steps": 10,
    "bootstrap.min_gain": -1.0,
    "bootstrap.sure_gain": -1.0,  # the first start is accepted
}


def arguments(workdir, **changes):
    values = [f"--config.{name}={value}" for name, value in (VALUES | changes).items()]
    return "--config=retrieval", f"--workdir={workdir}", "--config.quick", *values


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    workdir, printed = tmp_path_factory.mktemp("whole"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        assert not commands.run(patch, "anchor_opt.main", *arguments(workdir))
    return workdir, printed.getvalue()


def test_a_run_prints_its_table_and_its_rows_are_of_all_methods(whole):
    workdir, printed = whole
    table = (workdir / "table.md").read_text()
    assert "| bootstrap" in table and "| bootstrap" in printed
    assert "QUICK" in table and "QUICK" in printed and not re.search("Paper[ :(]", table + printed)
    rows = [Row(**row) for row in json.loads((workdir / "results.json").read_text())]
    assert {row.method for row in rows} >= {*METHODS}
    itself = [r for r in rows if r.source == r.target and r.metric in ("jaccard", "mrr")]
    assert itself and all(row.mean > 0.999 for row in itself)
    across = select(rows, metric="mrr", source="glove", target="minilm_input")
    relative = select(across, representation="relative")
    mrr = {row.method: row.mean for row in relative if row.anchors != "discrete"}
    assert mrr["seed"] < mrr["gt"] < mrr["lstsq_truth"]
    for name in ("relative_spaces.png", "record.json", "metrics.jsonl", "config.json"):
        assert (workdir / name).stat().st_size > 0
    assert not list(workdir.rglob("*.half"))


def test_a_killed_run_resumes_to_the_same_table(whole, tmp_path, monkeypatch):
    """Its bootstrap, which has several stages, has ended when it is killed, and is not stored."""
    expected, _ = whole
    parts = sorted(expected.glob("parts/*.json"), key=lambda path: path.stat().st_mtime_ns)
    number, name = next((i, path.name) for i, path in enumerate(parts) if "bootstrap" in path.name)
    code = "import runpy; from tests.faults.killed_run import kill_at\n"
    code += f"kill_at('os.rename', {name!r})\n"
    code += "runpy.run_module('anchor_opt.main', run_name='__main__')"
    command = [sys.executable, "-c", code, *arguments(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob("parts/*.json"))) == number >= 2
    assert not (tmp_path / "table.md").exists()
    assert not commands.run(monkeypatch, "anchor_opt.main", *arguments(tmp_path))
    for name in ("results.json", "table.md"):
        assert (tmp_path / name).read_text() == (expected / name).read_text()


def test_a_workdir_of_another_run_is_refused(whole, monkeypatch, capsys):
    again = arguments(whole[0], num_words=500)
    assert commands.run(monkeypatch, "anchor_opt.main", *again) == 2
    assert "num_words was 600, is now 500" in capsys.readouterr().err
