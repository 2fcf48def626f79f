"""Small runs on real data through the command line: whole, killed and resumed, and refused."""

import contextlib
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from anchor_opt.experiments import retrieval
from common.data.packages import cache_dir
from common.errors import UserError
from common.run.results import Row, select
from common.run.workdir import Workdir
from configs.anchor_opt.retrieval import get_config
from tests import commands

pytestmark = pytest.mark.network

ROOT = Path(__file__).parents[2]
SMALL = (
    "--config.quick",
    "--config.source=glove",
    "--config.target=minilm_input",
    "--config.num_words=600",
    "--config.num_anchors=60",
    "--config.num_pairs=30",
    "--config.random_seeds=0,1",
    "--config.optimise=target",
    "--config.algorithm1.steps=50",
    "--config.bootstrap.search_steps=10",
    "--config.bootstrap.min_gain=-1.0",
    "--config.bootstrap.sure_gain=-1.0",  # the first start is accepted
)
METHODS = "gt,seed,algorithm1,bootstrap,lstsq_truth,procrustes"
WHOLE = (*SMALL, f"--config.methods={METHODS}")


def arguments(workdir, *more):
    return "--config=configs/anchor_opt/retrieval.py", f"--workdir={workdir}", *WHOLE, *more


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    workdir, printed = tmp_path_factory.mktemp("whole"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        assert not commands.run(patch, "anchor_opt.main", *arguments(workdir))
    return workdir, printed.getvalue()


@pytest.mark.slow
def test_a_run_leaves_results_table_and_figures(whole):
    workdir, stdout = whole
    rows = [Row(**row) for row in json.loads((workdir / "results.json").read_text())]
    methods = {row.method for row in rows}
    assert methods >= {"gt", "seed", "algorithm1", "bootstrap", "lstsq_truth", "procrustes"}
    for row in rows:
        if row.get("representation") == "search":
            continue
        assert row.matches(experiment="retrieval", proxy=True, num_runs=2)
        assert row.matches(num_pairs=30, num_items=600)
        assert row.metric in ("jaccard", "mrr", "cosine", "p_at_1")
        assert -1 <= row.mean <= 1 and row.std >= 0
    itself = [r for r in rows if r.source == r.target and r.metric in ("jaccard", "mrr")]
    assert itself and all(row.mean > 0.999 for row in itself)
    across = select(rows, metric="mrr", source="glove", target="minilm_input")
    relative = select(across, representation="relative")
    mrr = {row.method: row.mean for row in relative if row.anchors != "discrete"}
    assert mrr["seed"] < mrr["gt"] < mrr["lstsq_truth"]
    table = (workdir / "table.md").read_text()
    assert "| bootstrap" in table and "| bootstrap" in stdout
    assert "QUICK" in table and "QUICK" in stdout and not re.search("Paper[ :(]", table + stdout)
    assert all(row.quick and row.paper_value is None for row in rows)
    for name in ("relative_spaces.png", "mrr.png", "metrics.jsonl", "config.json"):
        assert (workdir / name).stat().st_size > 0
    assert not list(workdir.rglob("*.half"))


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_table(whole, tmp_path, monkeypatch):
    expected, _ = whole
    parts = sorted(expected.glob("parts/*.json"), key=lambda path: path.stat().st_mtime_ns)
    code = "import runpy; from tests.faults.killed_run import kill_at\n"
    code += f"kill_at('os.rename', {parts[4].name!r})\n"  # as the fifth part is stored
    code += "runpy.run_module('anchor_opt.main', run_name='__main__')"
    command = [sys.executable, "-c", code, *arguments(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob("parts/*.json"))) == 4
    assert not (tmp_path / "table.md").exists()
    assert not commands.run(monkeypatch, "anchor_opt.main", *arguments(tmp_path))
    for name in ("results.json", "table.md"):
        assert (tmp_path / name).read_text() == (expected / name).read_text()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"source": "missing.vec"}, "neither a file of vectors nor one of"),
        ({"methods": ("gt", "magic")}, "no method 'magic'"),
        ({"num_words": 100, "num_anchors": 101}, "do not fit"),
        ({"num_words": 100_000}, "share 14689 words"),
        ({"num_words": 300, "methods": ("algorithm1",), "algorithm1.plan": "medium"}, "plan"),
    ],
)
def test_values_that_do_not_fit_are_refused_in_one_sentence(tmp_path, values, says):
    config = get_config()
    config.update_from_flattened_dict(values)
    with pytest.raises(UserError, match=says):
        retrieval.run(config, Workdir(tmp_path, {}), cache_dir())
    assert not (tmp_path / "table.md").exists()


def test_a_workdir_of_another_run_is_refused(whole, monkeypatch, capsys):
    again = arguments(whole[0], "--config.num_words=500")
    assert commands.run(monkeypatch, "anchor_opt.main", *again) == 2
    assert "num_words was 600, is now 500" in capsys.readouterr().err
