"""Real small runs: whole through the command line, stopped and resumed, and given wrong input."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from common import cli
from common.data.wheels import cache_dir
from common.errors import UserError
from common.workdir import Workdir
from configs.lpl.word_alignment import get_config
from lpl.experiments import EXPERIMENTS

ROOT = Path(__file__).parents[2]
VALUES = {
    "sizes": (50, 200),
    "num_validation": 20,
    "random_seeds": (0,),
    "neighbour_words": ("e3",),
    "methods": ("artetxe_2018", "mse_sgd", "lpa_mse"),
    "mse_sgd.updates": 100,
    "mse_sgd.learning_rate": 0.05,
    "mse_sgd.orthogonality": 0.0,
    "lpa_mse.updates": 100,
    "lpa_mse.learning_rate": 0.05,
    "lpa_mse.orthogonality": 0.0,
}


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """A user's own files: 400 words in two languages, one space nearly a rotation of the other."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    source = rng.standard_normal((400, 10)).astype(np.float32)
    rotation = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    target = source @ rotation + 0.2 * rng.standard_normal((400, 10)).astype(np.float32)
    np.savez(folder / "en.npz", vectors=source, words=np.array([f"e{i}" for i in range(400)]))
    np.savez(folder / "it.npz", vectors=target, words=np.array([f"i{i}" for i in range(400)]))
    lines = [f"e{i} i{i}\n" for i in range(350)]
    (folder / "train.txt").write_text("".join(lines[:250]) + "e1 unheard\n")
    (folder / "test.txt").write_text("".join(lines[250:]))
    return VALUES | {
        "sources": (str(folder / "en.npz"),),
        "targets": (str(folder / "it.npz"),),
        "dictionaries": (str(folder / "train.txt"),),
        "test_dictionaries": (str(folder / "test.txt"),),
    }


def command(workdir, values):
    config = "--config=configs/lpl/word_alignment.py"
    flags = [
        f"--config.{name}={','.join(map(str, value)) if isinstance(value, tuple) else value}"
        for name, value in values.items()
    ]
    line = [sys.executable, "-m", "lpl.main", config, f"--workdir={workdir}", *flags]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=300)


def inside(workdir, values):
    """The same in this process, so that compilations are shared."""
    config = get_config()
    config.update_from_flattened_dict(values)
    cli.settle(config)
    return EXPERIMENTS[config.experiment](config, Workdir(workdir, config.to_dict()), cache_dir())


@pytest.fixture(scope="module")
def whole(values, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("whole")
    done = command(workdir, values)
    assert done.returncode == 0, done.stderr
    return workdir, done.stdout


def test_a_run_leaves_results_table_and_figure(whole):
    workdir, stdout = whole
    rows = json.loads((workdir / "results.json").read_text())
    assert {row["metric"] for row in rows} == {"p_at_1", "p_at_5", "p_at_10"}
    assert {row["num_pairs"] for row in rows} == {50, 200}
    for row in rows:
        assert row["experiment"] == "word_alignment" and row["standin"] is False
        assert row["num_seeds"] == 1 and 0 <= row["mean"] <= 1 and row["std"] >= 0
        assert (row["num_words"], row["dim"]) == (400, 10)
    best = {(r["method"], r["retrieval"]): r["mean"] for r in rows if r["metric"] == "p_at_1"}
    assert len(best) == 6 and all(value > 0.5 for value in best.values())
    published = {(r["method"], r["retrieval"]): r["paper_value"] for r in rows if r["paper_value"]}
    assert published["lpa_mse", "csls"] == pytest.approx(0.4333)
    assert ("lpa_mse", "nn") not in published
    table = (workdir / "table.md").read_text()
    assert table.strip() == stdout.strip()
    assert "repeats that of Shigeto 2015" in table
    assert "250 pairs in both vocabularies (1 out of vocabulary" in table
    assert "e3, both" in table and "stand-in" not in table
    for name in ("word_alignment.png", "metrics.jsonl", "config.json"):
        assert (workdir / name).stat().st_size > 0
    records = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert any("pairs_per_second" in record for record in records)
    assert any(
        record["part"].endswith("lpa_mse-50-seed0") and "lpl" in record for record in records
    )
    assert not list(workdir.rglob("*.half"))


def test_a_run_stopped_within_a_training_ends_in_the_same_table(
    whole, values, tmp_path, monkeypatch
):
    expected, _ = whole
    log, calls = Workdir.log, []

    def stopped(self, part, step, logged):
        calls.append(part)
        if len(calls) == 30:
            raise KeyboardInterrupt
        log(self, part, step, logged)

    with monkeypatch.context() as patch:
        patch.setattr(Workdir, "log", stopped)
        with pytest.raises(KeyboardInterrupt):
            inside(tmp_path, values)
    assert list(tmp_path.glob("checkpoints/*/*"))  # of the training it was stopped in
    assert not (tmp_path / "table.md").exists()
    inside(tmp_path, values)
    for name in ("results.json", "table.md"):
        assert (tmp_path / name).read_text() == (expected / name).read_text()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"methods": ("magic",)}, "no method 'magic'"),
        ({"sources": ("missing.vec",)}, "missing.vec.* neither a file of vectors"),
        ({"dictionaries": ("missing.txt",)}, "neither a file of word pairs"),
        ({"sizes": (2000,)}, "too few for 2000 to train on"),
        ({"sizes": (0,)}, "give a positive number"),
        ({"sources": ("glove", "minilm")}, "one of each for every pair of spaces"),
        ({"split": "train"}, "choose one of test, validation"),
        ({"lpa_mse.retrieval": ("guess",)}, "retrieval is .'guess',.: give some of nn, csls"),
        ({"methods": ("lpa_mse",), "lpa_mse.k": 400}, "k is 400: .* 399"),
        ({"methods": ("lpa_mse",), "lpa_mse.updates": 5}, "multiple of 10"),
        ({"methods": ("lpa_mse",), "lpa_mse.weights": "guess"}, "choose one of closed, gradient"),
        ({"methods": ("lpa_mse",), "lpa_mse.batch": 0}, "lpa_mse.batch is 0"),
        ({"mse_sgd.map": "cubic"}, "no mse_sgd.map 'cubic': choose one of linear, mlp"),
        (
            {"methods": ("smith_2017",), "smith_2017.normalise": ("norm",)},
            "'norm': choose one of unit, center",
        ),
        (
            {"methods": ("smith_2017",), "smith_2017.keep": 0.0},
            "smith_2017.keep is 0.0: give a positive number",
        ),
        ({"methods": ("lpa_mse",), "lpa_mse.beta": -1.0}, "beta is -1.0"),
    ],
)
def test_a_mistake_is_one_sentence(values, tmp_path, wrong, says):
    with pytest.raises(UserError, match=says):
        inside(tmp_path, values | wrong)
    assert not (tmp_path / "table.md").exists()


def test_a_perceptron_in_place_of_the_matrix(values, tmp_path):
    wanted = {"methods": ("lpa_mse",), "sizes": (200,), "lpa_mse.map": "mlp", "lpa_mse.hidden": 64}
    inside(tmp_path, values | wanted | {"lpa_mse.updates": 500})
    rows = json.loads((tmp_path / "results.json").read_text())
    assert {row["method"]: row["mean"] for row in rows if row["metric"] == "p_at_10"}[
        "lpa_mse"
    ] > 0.3


def test_a_training_that_diverges_says_so(values, tmp_path):
    wild = {"methods": ("mse_sgd",), "mse_sgd.learning_rate": 1e6, "sizes": (200,)}
    with pytest.raises(UserError, match=r"diverged: step \d+ made .* lower its learning rate"):
        inside(tmp_path, values | wild)
