"""Inference with a fast encoder: complete, interrupted, and with wrong input."""

import json

import numpy as np
import pytest

from common.encoders import texts as text_encoders
from common.errors import UserError
from common.run import results
from common.run.results import Row
from configs.lpl.nli import get_config
from lpl import nli
from lpl.reports import nli as report

VALUES = {
    "datasets": ("synthetic",),
    "max_train": 60,
    "max_validation": 30,
    "max_test": 30,
    "num_pairs": (60,),
    "random_seeds": (0, 1),
    "map_hidden": 8,
    "classifier_hidden": 16,
    "updates": 20,
    "methods": ("baseline", "mse_lpl"),
}


@pytest.fixture(scope="module", autouse=True)
def letter_counts():
    """Replaces the encoders by counts of letters."""

    def encode(name, texts, cache, *, max_pieces, smoothing):
        return np.array(
            [[text.lower().count(letter) + 0.1 for letter in "abcdeilnorstu"] for text in texts],
            np.float32,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_encoders, "encode", encode)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory, run):
    workdir = tmp_path_factory.mktemp("whole")
    return workdir, run(workdir, get_config(), VALUES)


@pytest.mark.network
@pytest.mark.slow
def test_a_run_writes_results_table_and_figures(whole):
    workdir, shown = whole
    rows = json.loads((workdir / "results.json").read_text())
    assert {row["dataset"] for row in rows} == {"synthetic NLI"}
    assert {row["labels"]["test"] for row in rows} == {"matched", "mismatched"}
    gains = [row for row in rows if row["metric"].endswith("_gain")]
    assert len(rows) == 2 * 2 * 2 + len(gains) and len(gains) == 2 * 2
    assert {row["labels"]["over"] for row in gains} == {"baseline"}
    for row in rows:
        assert row["experiment"] == "nli" and row["proxy"] and row["labels"]["split"] == "test"
        assert row["num_runs"] == 2 and -1 <= row["mean"] <= 1 and row["std"] >= 0
        assert row["paper_value"] is None
        assert row["metric"].removesuffix("_gain") in ("accuracy", "neighbour_agreement")
    table = (workdir / "table.md").read_text()
    assert table.strip() == shown.strip() and "0.46 and 0.55" in table
    for part in ("matched", "mismatched"):
        title = f"### synthetic NLI, {part} (proxy data): "
        assert f"{title}accuracy" in table and f"{title}fraction of nearest pairs" in table
        assert f"{title}gain in the same random run" in table
        assert (workdir / f"synthetic_nli_{part}.png").stat().st_size > 0
    assert "| baseline + MSE + LPL | baseline |" in table and "| (the pair)" in table
    records = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert any("pairs_per_second" in record for record in records)
    assert any(r["part"] == "synthetic-60-mse_lpl" and "lpl" in r for r in records)
    assert not list(workdir.rglob("*.half")) and not list(workdir.glob("checkpoints/*"))


def test_gains_are_means_of_differences_in_the_same_run():
    values = {("baseline", 0): 0.5, ("baseline", 1): 0.6, ("mse", 0): 0.7, ("mse", 1): 0.7}
    about = {"experiment": "nli", "dataset": "SNLI", "num_pairs": 9, "labels": {"test": "test"}}
    rows = [
        Row(**about, metric="accuracy", method=method, random_seed=random_seed, mean=value)
        for (method, random_seed), value in values.items()
    ]
    (row,) = results.averaged(report.gains(rows))
    assert (row.method, row.metric, row.get("over")) == ("mse", "accuracy_gain", "baseline")
    assert (row.mean, row.std) == pytest.approx((0.15, 0.0707), abs=1e-4)


@pytest.mark.network
@pytest.mark.slow
def test_an_interrupted_run_resumes_to_the_same_results(whole, tmp_path, run, assert_resumes):
    assert_resumes(lambda: run(tmp_path, get_config(), VALUES), tmp_path, whole[0], 4)


@pytest.mark.network
def test_with_the_validation_split_no_test_pair_is_measured(tmp_path, run):
    wanted = {"split": "validation", "num_pairs": (20, 60), "methods": ("baseline",)}
    run(tmp_path, get_config(), VALUES | wanted)
    rows = json.loads((tmp_path / "results.json").read_text())
    assert all(row["labels"] == {"test": "validation", "split": "validation"} for row in rows)
    assert {row["num_pairs"] for row in rows} == {20, 60}


@pytest.mark.parametrize(
    ("dataset", "num_pairs", "expected"),
    [("SNLI", 1_000, 0.550), ("SNLI", 500, None), ("synthetic NLI", 1_000, None)],
)
def test_the_paper_s_numbers_are_shown_for_snli_alone(dataset, num_pairs, expected):
    about = {"experiment": "nli", "method": "mse_lpl", "mean": 0.5, "metric": "accuracy"}
    row = Row(**about, dataset=dataset, num_pairs=num_pairs)
    (shown,) = report.with_published([row])
    assert shown.paper_value == (expected and pytest.approx(expected, abs=1e-3))
    assert shown.paper_dataset == (dataset if expected else None)


@pytest.mark.network
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"methods": ("magic",)}, "no method 'magic'"),
        ({"datasets": ("mnli",)}, "no set of sentence pairs 'mnli'"),
        ({"num_pairs": (61,)}, "asks for 61 .* synthetic NLI has 60: lower num_pairs or raise max"),
        ({"split": "train"}, "no split 'train': choose one of test, validation"),
        ({"num_neighbours": 60}, "num_neighbours is 60 of [0-9]* other pairs"),
        ({"num_neighbours": 0}, "num_neighbours is 0 of [0-9]* other pairs"),
        ({"updates": 5}, "give a multiple of 10"),
        ({"map": "cubic"}, "no map 'cubic'"),
        ({"mse_lpl.learning_rate": 1e30}, "diverged: step . made .* lower its learning rate"),
    ],
)
def test_a_mistake_is_reported_in_one_sentence(tmp_path, run, wrong, message):
    with pytest.raises(UserError, match=message):
        run(tmp_path, get_config(), VALUES | wrong)
    assert not (tmp_path / "table.md").exists()


def test_every_method_has_a_name_in_the_table():
    assert list(report.NAMES) == list(nli.METHODS) == list(get_config().methods)
