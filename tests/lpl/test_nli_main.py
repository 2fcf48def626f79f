"""Small runs with a user's own encoder: stopped and resumed, and given wrong input."""

import json

import numpy as np
import pytest

from common import cli
from common.data import encoders
from common.data.wheels import cache_dir
from common.errors import UserError
from common.workdir import Workdir
from configs.lpl.nli import get_config
from lpl import nli, nli_experiment
from lpl.experiments import EXPERIMENTS
from lpl.nli_report import NAMES

VALUES = {
    "datasets": ("synthetic",),
    "max_train": 60,
    "max_validation": 30,
    "max_test": 30,
    "sizes": (60,),
    "random_seeds": (0, 1),
    "map_hidden": 8,
    "hidden": 16,
    "updates": 20,
    "methods": ("baseline", "mse_lpl"),
}


@pytest.fixture(scope="module", autouse=True)
def letters():
    """An encoder that is quick: how often each letter comes."""

    def encode(name, texts, cache, *, max_pieces, smoothing):
        return np.array(
            [[text.lower().count(letter) + 0.1 for letter in "abcdeilnorstu"] for text in texts],
            np.float32,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoders, "encode", encode)
        yield


def inside(workdir, values):
    config = get_config()
    config.update_from_flattened_dict(VALUES | values)
    cli.settle(config)
    return EXPERIMENTS[config.experiment](config, Workdir(workdir, config.to_dict()), cache_dir())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("whole")
    return workdir, inside(workdir, {})


def test_a_run_leaves_results_table_and_figures(whole):
    workdir, shown = whole
    rows = json.loads((workdir / "results.json").read_text())
    assert {row["dataset"] for row in rows} == {"synthetic NLI"}
    assert {row["test"] for row in rows} == {"matched", "mismatched"}
    assert len(rows) == 2 * 2 * 2
    for row in rows:
        assert row["experiment"] == "nli" and row["standin"] is True and row["split"] == "test"
        assert row["num_seeds"] == 2 and 0 <= row["mean"] <= 1 and row["std"] >= 0
        assert row["paper_value"] is None and row["metric"] in ("accuracy", "neighbour_agreement")
    table = (workdir / "table.md").read_text()
    assert table == shown
    assert table.count("(stand-in)") == 2 and "0.46 and 0.55" in table
    assert "baseline + MSE + LPL" in table and "| (the pair)" in table
    for name in ("synthetic_nli_matched", "synthetic_nli_mismatched"):
        assert (workdir / f"{name}.png").stat().st_size > 0
    records = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert any("pairs_per_second" in record for record in records)
    assert any(r["part"] == "synthetic-mse_lpl-60" and "lpl" in r for r in records)
    assert not list(workdir.rglob("*.half"))


def test_a_run_stopped_within_a_training_ends_in_the_same_table(whole, tmp_path, monkeypatch):
    expected, _ = whole
    log, calls = Workdir.log, []

    def stopped(self, part, step, logged):
        calls.append(part)
        if len(calls) == 8:
            raise KeyboardInterrupt
        log(self, part, step, logged)

    with monkeypatch.context() as patch:
        patch.setattr(Workdir, "log", stopped)
        with pytest.raises(KeyboardInterrupt):
            inside(tmp_path, {})
    assert list(tmp_path.glob("checkpoints/*/*"))  # of the training it was stopped in
    assert not (tmp_path / "table.md").exists()
    inside(tmp_path, {})
    for name in ("results.json", "table.md"):
        assert (tmp_path / name).read_text() == (expected / name).read_text()


def test_validation_leaves_the_test_alone(whole, tmp_path):
    inside(tmp_path, {"split": "validation", "sizes": (20, 60), "methods": ("baseline",)})
    rows = json.loads((tmp_path / "results.json").read_text())
    assert {(row["test"], row["split"]) for row in rows} == {("validation", "validation")}
    assert {row["num_pairs"] for row in rows} == {20, 60}


@pytest.mark.parametrize(
    ("dataset", "method", "size", "published"),
    [
        ("SNLI", "baseline", 1_000, 0.461),
        ("SNLI", "mse_lpl", 1_000, 0.550),
        ("SNLI", "mse_lpl", 500, None),
        ("synthetic NLI", "mse_lpl", 1_000, None),
    ],
)
def test_the_paper_stands_beside_snli_alone(dataset, method, size, published):
    row = {"dataset": dataset, "method": method, "num_pairs": size, "metric": "accuracy"}
    found = nli_experiment._row(row, get_config())["paper_value"]
    assert found == (published and pytest.approx(published, abs=1e-3))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"methods": ("magic",)}, "no method 'magic'"),
        ({"datasets": ("mnli",)}, "no set of sentence pairs 'mnli'"),
        ({"sizes": (0,)}, "give a positive number"),
        ({"sizes": (61,)}, "synthetic NLI has 60: lower sizes or raise max_train"),
        ({"split": "train"}, "choose one of test, validation"),
        ({"updates": 5}, "multiple of 10"),
        ({"floor": 1.0}, "floor is 1.0"),
        ({"k": 50}, r"k is 50: synthetic NLI has \d\d training premises"),
        ({"mse_lpl.gamma": -1.0}, "mse_lpl.gamma is -1.0"),
        ({"hidden": 0}, "hidden is 0: give a positive number"),
        ({"map": "cubic"}, "no map 'cubic'"),
        ({"mse_lpl.learning_rate": 1e30}, "diverged: step . made .* lower its learning rate"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path, wrong, says):
    with pytest.raises(UserError, match=says):
        inside(tmp_path, wrong)
    assert not (tmp_path / "table.md").exists()


def test_every_method_has_a_name_in_the_table():
    assert list(NAMES) == list(nli.METHODS) == list(get_config().methods)
