"""Word alignment on a user's own files: complete, interrupted, and with wrong input."""

import json
import re

import numpy as np
import pytest

from common.errors import UserError
from common.run.results import Row
from configs.lpl import constants
from configs.lpl.word_alignment import get_config
from lpl.bilingual_data import BilingualData
from lpl.reports.word_alignment import gains, with_published

VALUES = {
    "num_pairs": (50, 300),
    "max_pairs": (200,),
    "num_validation": 20,
    "random_seeds": (0,),
    "neighbour_words": ("e3",),
    "self_learning.words": 400,
    "methods": ("artetxe_2018", "self_learning", "mse_sgd", "lpa_mse"),
}
TRAINING = {"updates": 100, "learning_rate": 0.05, "orthogonality": 0.0}
for method in ("mse_sgd", "lpa_mse"):
    VALUES |= {f"{method}.{name}": value for name, value in TRAINING.items()}


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """400 words in two languages; one space is nearly a rotation of the other."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    source = rng.standard_normal((400, 10)).astype(np.float32)
    rotation = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    target = source @ rotation + 0.2 * rng.standard_normal((400, 10)).astype(np.float32)
    for name, vectors in (("en", source), ("it", target)):
        words = np.array([f"{name[0]}{i}" for i in range(400)])
        np.savez(folder / f"{name}.npz", vectors=vectors, words=words)
    lines = [f"e{i} i{i}\n" for i in range(350)]
    (folder / "en-it.train.txt").write_text("".join(lines[:250]) + "e1 unknown\n")
    (folder / "test.txt").write_text("".join(lines[250:]))
    files = {
        "sources": "en.npz",
        "targets": "it.npz",
        "dictionaries": "en-it.train.txt",
        "test_dictionaries": "test.txt",
    }
    return VALUES | {name: (str(folder / file),) for name, file in files.items()}


@pytest.fixture(scope="module")
def whole(values, tmp_path_factory, run):
    workdir = tmp_path_factory.mktemp("whole")
    return workdir, run(workdir, get_config(), values)


@pytest.mark.slow
def test_a_run_writes_results_table_and_figure(whole):
    workdir, shown = whole
    rows = json.loads((workdir / "results.json").read_text())
    assert {row["metric"] for row in rows} == {"p_at_1", "p_at_5", "p_at_10", "gain"}
    assert {row["num_pairs"] for row in rows} == {50, 200}
    for row in rows:
        assert row["experiment"] == "word_alignment" and row["proxy"] is False
        assert row["num_runs"] == 1 and abs(row["mean"]) <= 1 and row["std"] >= 0
        assert (row["num_items"], row["dim"]) == (400, 10)
    best = [row["mean"] for row in rows if (row["metric"], row["num_pairs"]) == ("p_at_1", 200)]
    assert len(best) == 8 and min(best) > 0.5
    assert {row["method"] for row in rows if row["paper_value"]} == {
        "artetxe_2018",
        "mse_sgd",
        "lpa_mse",
    }
    for gain in (row for row in rows if row["metric"] == "gain"):
        precision = {
            row["method"]: row["mean"]
            for row in rows
            if (row["metric"], row["num_pairs"]) == ("p_at_1", gain["num_pairs"])
            and row["labels"] == gain["labels"]
        }
        assert gain["mean"] == pytest.approx(precision["lpa_mse"] - precision["mse_sgd"])
    table = (workdir / "table.md").read_text()
    assert table.strip() == shown.strip()
    assert "repeats that of Shigeto 2015" in table and "proxy" not in table
    assert "| 250                        | 1           | 250 of 250" in table
    assert "| e3, both" in table and (workdir / "word_alignment.png").stat().st_size > 0
    records = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert any("pairs_per_second" in record for record in records)
    assert any(r["part"].endswith("50-lpa_mse-seed0") and "lpl" in r for r in records)
    assert not list(workdir.rglob("*.half")) and not list(workdir.glob("checkpoints/*"))


def row_of(**fields):
    """P@1 by CSLS from 50 known pairs."""
    about = {"experiment": "word_alignment", "dataset": "a", "metric": "p_at_1", "num_pairs": 50}
    return Row(**about, labels={"retrieval": "csls"}, **fields)


@pytest.mark.parametrize(
    ("dictionary", "proxy", "method", "expected"),
    [
        ("OPUS_en_it_europarl_train_5K.txt", False, "lpa_mse", 0.4333),
        ("files/en-de.train.txt", False, "lpa_mse", 0.4607),
        ("files/en-de.train.txt", False, "mse_sgd", None),  # the paper's row has 'nn'
        ("en-item.txt", False, "lpa_mse", None),
        ("en-it.train.txt", True, "lpa_mse", None),
        ("wordnet", True, "lpa_mse", None),
    ],
)
def test_the_paper_s_numbers_belong_to_its_language_pairs(dictionary, proxy, method, expected):
    data = BilingualData(("en.vec", "xx.vec", dictionary), None, None, None, None, proxy)
    (row,) = with_published([row_of(method=method, mean=0.4)], data)
    assert row.paper_value == (expected and pytest.approx(expected))


def test_the_gain_by_lpl_is_paired_by_random_run_and_has_no_published_number():
    rows = [
        row_of(method=method, random_seed=seed, mean=value, paper_value=0.4)
        for method, values in (("mse_sgd", (0.1, 0.3)), ("lpa_mse", (0.2, 0.35)))
        for seed, value in enumerate(values)
    ]
    gained = gains(rows)
    assert [row.mean for row in gained] == pytest.approx([0.1, 0.05])
    assert {row.metric for row in gained} == {"gain"} and gained[0].paper_value is None
    assert not gains(rows[2:])


def test_a_run_of_closed_forms_alone_has_a_table_and_no_figure(values, tmp_path, run):
    shown = run(tmp_path, get_config(), values | {"methods": ("artetxe_2016",)})
    assert "| artetxe_2016" in shown and "Gain" not in shown
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.slow
def test_an_interrupted_run_resumes(whole, values, tmp_path, run, assert_resumes):
    assert_resumes(lambda: run(tmp_path, get_config(), values), tmp_path, whole[0], 4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"methods": ("magic",)}, "no method 'magic': choose one of shigeto_2015, artetxe_2016"),
        ({"sources": ("missing.vec",)}, "missing.vec.* neither a file of vectors"),
        ({"dictionaries": ("missing.txt",)}, "neither a file of word pairs"),
        ({"num_pairs": (2000,), "max_pairs": ()}, "too few for 2000"),
        ({"sources": ("glove", "minilm")}, "2 sources, 1 targets, .* every pair of spaces"),
        ({"split": "train"}, "no split 'train': choose one of test, validation"),
        ({"num_test": 0}, "number of words to translate is 0"),
        ({"lpa_mse.k": 10**6}, "k is 1,000,000 of [0-9,]* other rows"),
        ({"lpa_mse.retrieval": ("guess",)}, "no retrieval 'guess': choose one of nn, csls"),
        ({"lpa_mse.updates": 5}, "give a multiple of 10"),
        ({"lpa_mse.weights": "guess"}, "choose one of closed_form, gradient"),
        ({"lpa_mse.map": "cubic"}, "no map 'cubic': choose one of linear, mlp"),
        ({"lpa_mse.learning_rate": 1e6}, r"diverged: step \d+ made .* lower its learning rate"),
    ],
)
def test_a_mistake_is_reported_in_one_sentence(values, tmp_path, run, wrong, message):
    with pytest.raises(UserError, match=message):
        run(tmp_path, get_config(), values | {"methods": ("lpa_mse",)} | wrong)
    assert not (tmp_path / "table.md").exists()


@pytest.mark.slow
def test_a_constant_is_varied_and_all_else_stays_as_it_is(values, tmp_path, run):
    values = {f"word_alignment.{name}": value for name, value in values.items()}
    values |= {"word_alignment.methods": ("lpa_mse",), "word_alignment.num_pairs": (200,)}
    varied = {"vary": (("word_alignment.lpa_mse.k", (2, 10)),)}
    table = run(tmp_path, constants.get_config(), values | varied)
    rows = json.loads((tmp_path / "results.json").read_text())
    assert {(row["sweep_over"], row["sweep_value"], row["metric"]) for row in rows} == {
        ("word_alignment.lpa_mse.k", value, "p_at_1") for value in ("2", "10")
    }
    assert {row["labels"]["split"] for row in rows} == {"validation"}
    assert "## lpa_mse.k of word_alignment: P@1" in table
    assert re.search(r"\| Retrieval \| 2 +\| 10 +\|", table)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("experiment", ("nli",)), "no experiment 'experiment': choose one of word_alignment"),
        (("alignment.lpa_mse.k", (2,)), "config.vary has"),
        ("word_alignment.lpa_mse.k", "config.vary has"),
    ],
)
def test_a_wrong_line_of_vary_is_refused_in_one_sentence(line, message, tmp_path, run):
    with pytest.raises(UserError, match=message):
        run(tmp_path, constants.get_config(), {"vary": (line,)})
