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
from lpl import nli, nli_data, paper
from lpl.experiments import EXPERIMENTS

BBC, SYNTHETIC = "BBC pairs", "synthetic NLI"
VALUES = {
    "datasets": ("bbc_pairs", "synthetic"),
    "max_train": 150,
    "max_validation": 30,
    "max_test": 60,
    "sizes": (40, 120),
    "random_seeds": (0, 1),
    "map_hidden": 8,
    "hidden": 16,
    "updates": 50,
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
    places = {(row["dataset"], row["test"]) for row in rows}
    assert places == {(BBC, "test"), (SYNTHETIC, "matched"), (SYNTHETIC, "mismatched")}
    assert len(rows) == 3 * 2 * 2 * 2
    for row in rows:
        assert row["experiment"] == "nli" and row["standin"] is True and row["split"] == "test"
        assert row["num_seeds"] == 2 and 0 <= row["mean"] <= 1 and row["std"] >= 0
        assert row["paper_value"] is None and row["metric"] in ("accuracy", "neighbour_agreement")
    table = (workdir / "table.md").read_text()
    assert table == shown
    assert table.count("(stand-in)") == 3 and "0.46 and 0.55" in table
    assert "baseline + MSE + LPL" in table and "| (the pair)" in table
    for name in ("bbc_pairs_test", "synthetic_nli_matched", "synthetic_nli_mismatched"):
        assert (workdir / f"{name}.png").stat().st_size > 0
    records = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert any("pairs_per_second" in record for record in records)
    assert any(r["part"] == "synthetic-mse_lpl-120" and "lpl" in r for r in records)
    assert not list(workdir.rglob("*.half"))


def test_a_run_stopped_within_a_training_ends_in_the_same_table(whole, tmp_path, monkeypatch):
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
            inside(tmp_path, {})
    assert list(tmp_path.glob("checkpoints/*/*"))  # of the training it was stopped in
    assert not (tmp_path / "table.md").exists()
    inside(tmp_path, {})
    for name in ("results.json", "table.md"):
        assert (tmp_path / name).read_text() == (expected / name).read_text()


def test_validation_leaves_the_test_alone(whole, tmp_path):
    values = {"split": "validation", "datasets": ("bbc_pairs",), "sizes": (120,)}
    inside(tmp_path, values)
    rows = json.loads((tmp_path / "results.json").read_text())
    assert {(row["test"], row["split"]) for row in rows} == {("validation", "validation")}


def test_the_paper_stands_beside_snli_alone(tmp_path, monkeypatch):
    real = nli_data.load("bbc_pairs", get_config(), cache_dir())
    monkeypatch.setitem(
        nli_data.CORPORA, "snli", lambda *_: real._replace(title="SNLI", standin=False)
    )
    values = {"datasets": ("snli",), "sizes": (40, 1_000), "max_train": 3_000, "updates": 10}
    table = inside(tmp_path, values | {"methods": ("baseline",)})
    rows = json.loads((tmp_path / "results.json").read_text())
    published = {row["num_pairs"]: row["paper_value"] for row in rows if row["paper_value"]}
    assert published == {1_000: pytest.approx(0.461, abs=1e-3)}
    assert "(stand-in)" not in table
    assert paper.NLI["SNLI", "mse_lpl", 1_000] == pytest.approx(0.55, abs=1e-3)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"methods": ("magic",)}, "no method 'magic'"),
        ({"datasets": ("mnli",)}, "no set of sentence pairs 'mnli'"),
        ({"sizes": (0,)}, "numbers of training pairs from 1 up"),
        ({"sizes": (151,)}, "BBC pairs has 150: lower sizes or raise max_train"),
        ({"split": "train"}, "choose test or validation"),
        ({"updates": 5}, "multiple of 10"),
        ({"floor": 1.0}, "floor is 1.0"),
        ({"k": 50}, "k is 50: BBC pairs has 50 training premises"),
        ({"mse_lpl.gamma": -1.0}, "mse_lpl.gamma is -1.0"),
        ({"hidden": 0}, "hidden is 0: give a number from 1 up"),
        ({"map": "cubic"}, "no map 'cubic'"),
        ({"mse_lpl.learning_rate": 1e30}, "diverged: lower mse_lpl.learning_rate"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path, wrong, says):
    with pytest.raises(UserError, match=says):
        inside(tmp_path, {"datasets": ("bbc_pairs",)} | wrong)
    assert not (tmp_path / "table.md").exists()


def test_every_method_has_a_name_in_the_table():
    from lpl.nli_report import NAMES

    assert list(NAMES) == list(nli.METHODS) == list(get_config().methods)
