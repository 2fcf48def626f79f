"""Real small runs: whole, stopped and resumed, and given wrong input."""

import functools
import json

import numpy as np
import pytest

from common import cli, train
from common.data import bbc, reviews, words
from common.data.wheels import cache_dir
from common.errors import UserError
from common.workdir import Workdir
from configs.embed_match import correlate, ensemble, match
from embed_match.experiments import EXPERIMENTS

CONFIGS = {"match": match, "correlate": correlate, "ensemble": ensemble}
SMALL = {
    "dataset": "rotten_tomatoes",
    "num_texts": 400,
    "num_words": 200,
    "pairs": ("C1-C2", "G1-G2", "C1-glove"),  # the quick run has LSTM-C1
    "cbow.dim": 12,
    "cbow.epochs": 2,
    "cbow.pieces": 2,
    "glove.dim": 12,
    "glove.blocks": 4,
    "glove.epochs": 1,
    "glove.steps": 2,
}


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    """Data from the cache directory, trained embeddings into a folder of their own."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        for module, arguments in ((reviews, 1), (words, 2), (bbc, 0)):
            load = functools.cache(module.load)
            patch.setattr(
                module,
                "load",
                lambda *given, load=load, n=arguments: load(*given[:n], cache_dir()),
            )
        yield folder


def run(name, workdir, cache, **changes):
    config = CONFIGS[name].get_config()
    values = {key: value for key, value in SMALL.items() if key != "pairs" or name == "match"}
    config.update_from_flattened_dict(values | changes)
    cli.settle(config)
    return EXPERIMENTS[name](config, Workdir(workdir, config.to_dict()), cache)


def rows_of(workdir):
    return json.loads((workdir / "results.json").read_text())


@pytest.fixture(scope="module")
def matched(own_cache, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("match")
    return workdir, run("match", workdir, own_cache)


def test_match_leaves_all_of_table_1(matched):
    workdir, table = matched
    rows = rows_of(workdir)
    found = {(row["source"], row["target"], row["metric"]): row for row in rows}
    for pair in (("C1", "C2"), ("G1", "G2"), ("C1", "glove")):
        for metric in ("l2", "p_at_1", "p_at_5", "ot", "ot_entropic"):
            row = found[*pair, metric]
            assert np.isfinite(row["mean"]) and row["experiment"] == "match"
            # Its numbers are on IMDB: never beside a stand-in.
            assert row["standin"] and row["paper_value"] is None
        assert found[*pair, "p_at_1"]["mean"] <= found[*pair, "p_at_5"]["mean"]
    assert found["C1", "C2", "l2"]["num_words"] == 200 > found["C1", "glove", "l2"]["num_words"]
    assert table == (workdir / "table.md").read_text()
    assert "stand-in" in table and "Words/s" in table
    for name in ("match.png", "metrics.jsonl"):
        assert (workdir / name).stat().st_size > 0
    records = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert any(record.get("words_per_second", 0) > 0 for record in records)


def test_a_training_that_was_killed_goes_on_to_the_same_numbers(matched, tmp_path, monkeypatch):
    expected, _ = matched
    chunk, calls = train._chunk, []

    def killed(*args):
        calls.append(args)
        if len(calls) == 2:  # the second half of G1
            raise KeyboardInterrupt
        return chunk(*args)

    cache, pairs = tmp_path / "cache", ("G1-G2",)
    with monkeypatch.context() as patch:
        patch.setattr(train, "_chunk", killed)
        with pytest.raises(KeyboardInterrupt):
            run("match", tmp_path / "run", cache, pairs=pairs)
    assert list(tmp_path.glob("run/checkpoints/train-G1/*"))
    assert "(resumed)" in run("match", tmp_path / "run", cache, pairs=pairs)
    timed = ("ot_seconds", "ot_entropic_seconds")
    wanted = [r for r in rows_of(expected) if (r["source"], r["target"]) == ("G1", "G2")]
    found = rows_of(tmp_path / "run")
    assert [r for r in found if r["metric"] not in timed] == [
        r for r in wanted if r["metric"] not in timed
    ]


def test_correlate_has_a_point_a_pair(matched, own_cache, tmp_path):
    changes = {"embeddings": ("C1", "C2", "G1", "glove"), "random_seeds": (0, 1), "resamples": 50}
    table = run("correlate", tmp_path, own_cache, **changes)
    rows = rows_of(tmp_path)
    for task in ("sentiment", "news"):
        (row,) = [r for r in rows if (r["dataset"], r["metric"]) == (task, "spearman")]
        assert -1 <= row["low"] <= row["high"] <= 1 and -1 <= row["mean"] <= 1
        accuracy = [r for r in rows if (r["dataset"], r["metric"]) == (task, "accuracy")]
        assert len(accuracy) == 4 and all(0 < r["mean"] < 1 for r in accuracy)
    assert sum(row["metric"] == "l2" for row in rows) == 6
    assert "C2-glove" in table and (tmp_path / "correlate.png").stat().st_size > 0


def test_ensembles_of_every_pair(matched, own_cache, tmp_path):
    changes = {"embeddings": ("C1", "G1", "glove"), "random_seeds": (0, 1)}
    table = run("ensemble", tmp_path, own_cache, **changes)
    found = {(r["source"], r["target"], r["method"], r["metric"]): r for r in rows_of(tmp_path)}
    members = {name: found[name, name, "member", "accuracy"]["mean"] for name in ("C1", "glove")}
    for way in ("concatenate", "average", "logits"):
        gain = found["C1", "glove", way, "gain"]
        assert gain["num_seeds"] == 2
        accuracy = found["C1", "glove", way, "accuracy"]["mean"]
        assert gain["mean"] == pytest.approx(accuracy - np.mean(list(members.values())))
    assert "pairs that gain" in table
    assert (tmp_path / "ensemble-sentiment.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("name", "wrong", "says"),
    [
        ("match", {"pairs": ("C1-C9",)}, "no embedding 'C9'"),
        ("match", {"pairs": ("C1",)}, "'C1' is not two names"),
        ("match", {"epsilon": 0.0}, "epsilon is 0"),
        ("match", {"dataset": "amazon"}, "No set of texts is called 'amazon'"),
        ("match", {"cbow.dim": 0}, "dim of C1 is 0"),
        (
            "match",
            {"pairs": ("LSTM-C1",), "models.LSTM.start": "glove"},
            "no start of LSTM 'glove'",
        ),
        ("match", {"num_words": 3}, "num_words is 3"),
        ("correlate", {"embeddings": ("C1", "C1", "C2", "G1")}, "each once"),
        ("correlate", {"embeddings": ("C1", "C2")}, "fewer than four"),
        ("correlate", {"tasks": ("poetry",)}, "no task 'poetry'"),
        ("ensemble", {"inverse_penalty": 0.0}, "inverse_penalty is 0"),
    ],
)
def test_a_mistake_is_one_sentence(own_cache, tmp_path, name, wrong, says):
    with pytest.raises(UserError, match=says):
        run(name, tmp_path, own_cache, **wrong)
    assert not (tmp_path / "table.md").exists()
