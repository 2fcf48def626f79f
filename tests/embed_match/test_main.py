"""Small runs on real data: complete, interrupted and resumed, and with wrong names."""

import functools
import json

import numpy as np
import pytest

from common.data.packages import cache_dir
from common.data.sets import bbc, reviews
from common.encoders import texts as text_encoders
from common.errors import UserError
from common.run import cli, settings
from common.run.workdir import Workdir
from common.spaces import paired_spaces
from configs.embed_match import correlate, ensemble, match, sentences

pytestmark = pytest.mark.network

CONFIGS = {"match": match, "correlate": correlate, "ensemble": ensemble}
PAIRS = (("C1", "C2"), ("G1", "G2"), ("C1", "glove"))
SMALL = {"dataset": "rotten_tomatoes", "num_texts": 400, "num_words": 200}
SMALL |= {"cbow.dim": 12, "cbow.epochs": 2, "cbow.shards": 2}
SMALL |= {"random_seeds": (0, 1)}
SMALL |= {"glove.dim": 12, "glove.blocks": 4, "glove.epochs_per_step": 1, "glove.steps": 2}


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    """A folder for trained embeddings; data are read from the usual cache directory."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, arguments in (
            (reviews, "load", 1),
            (paired_spaces, "load_space", 1),
            (bbc, "load", 0),
        ):
            load = functools.cache(getattr(module, name))
            read = lambda *given, load=load, n=arguments: load(*given[:n], cache_dir())  # noqa: E731
            patch.setattr(module, name, read)
        yield tmp_path_factory.mktemp("cache")


def run(name, workdir, cache, **changes):
    config = CONFIGS[name].get_config()
    config.update_from_flattened_dict(SMALL | changes)
    settings.apply_quick(config)
    return call(config, workdir, cache)


def call(config, workdir, cache):
    experiment = cli.experiment("embed_match.experiments", config.experiment)
    return experiment(config, Workdir(workdir, config.to_dict()), cache)


def rows_of(workdir):
    return json.loads((workdir / "results.json").read_text())


@pytest.fixture(scope="module")
def matched(cache, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("match")
    pairs = tuple("-".join(pair) for pair in PAIRS)  # LSTM-C1 is in the quick run of the config
    return workdir, run("match", workdir, cache, pairs=pairs)


@pytest.mark.slow
def test_match_measures_all_of_table_1(matched):
    workdir, table = matched
    rows = {(row["source"], row["target"], row["metric"]): row for row in rows_of(workdir)}
    for pair in PAIRS:
        for metric in ("l2", "p_at_1", "p_at_5", "ot", "ot_entropic"):
            row = rows[*pair, metric]
            assert np.isfinite(row["mean"]) and row["experiment"] == "match"
            # The poster's numbers are on IMDB and must not stand beside those of proxy data.
            assert row["proxy"] and row["paper_value"] is None
        assert rows[*pair, "p_at_1"]["mean"] <= rows[*pair, "p_at_5"]["mean"]
        assert rows[*pair, "l2"]["num_runs"] == 2 and rows[*pair, "l2"]["std"] > 0
    assert rows["C1", "C2", "l2"]["num_items"] == 200 > rows["C1", "glove", "l2"]["num_items"]
    assert table.strip() == (workdir / "table.md").read_text().strip()
    assert "proxy" in table and "Words/s" in table
    for figure in ("match", "curve"):
        assert (workdir / f"{figure}.png").stat().st_size > 0
    assert '"words_per_second"' in (workdir / "metrics.jsonl").read_text()


def test_an_interrupted_training_resumes_to_the_same_numbers(matched, tmp_path, interrupted):
    expected, _ = matched
    cache, pairs = tmp_path / "cache", ("G1-G2",)
    interrupted(2, lambda: run("match", tmp_path / "run", cache, pairs=pairs))  # in the midst of G1
    assert list(tmp_path.glob("run/checkpoints/train-G1-seed1/*"))
    assert "(resumed)" in run("match", tmp_path / "run", cache, pairs=pairs)
    wanted = [row for row in rows_of(expected) if row["source"] == "G1"]
    for row, other in zip(rows_of(tmp_path / "run"), wanted, strict=True):
        assert row == other or "seconds" in row["metric"]


@pytest.mark.slow
def test_correlate_measures_every_pair_and_task(matched, cache, tmp_path):
    changes = {"embeddings": ("C1", "C2", "G1", "glove")}
    table = run("correlate", tmp_path, cache, **changes, bootstrap_resamples=50)
    rows = rows_of(tmp_path)
    for task in ("sentiment", "news"):
        (row,) = [r for r in rows if (r["dataset"], r["metric"]) == (task, "spearman")]
        assert -1 <= row["labels"]["low"] <= row["labels"]["high"] <= 1 and -1 <= row["mean"] <= 1
        accuracy = [r for r in rows if (r["dataset"], r["metric"]) == (task, "accuracy")]
        assert len(accuracy) == 4 and all(0 < r["mean"] < 1 for r in accuracy)
    assert sum(row["metric"] == "l2" for row in rows) == 6
    assert "Difference, news" in table and (tmp_path / "correlate.png").stat().st_size > 0


def test_the_gain_of_an_ensemble_is_over_its_better_member(matched, cache, tmp_path):
    changes = {"embeddings": ("C1", "G1", "glove"), "random_seeds": (0,)}
    table = run("ensemble", tmp_path, cache, **changes)
    rows = {(r["source"], r["target"], r["method"], r["metric"]): r for r in rows_of(tmp_path)}
    members = [rows[name, name, "member", "accuracy"]["mean"] for name in ("C1", "glove")]
    for method in ("concatenate", "average", "logits"):
        gain = rows["C1", "glove", method, "gain"]["mean"]
        accuracy = rows["C1", "glove", method, "accuracy"]["mean"]
        assert gain == pytest.approx(accuracy - max(members))
    assert "Pairs that gain" in table
    assert (tmp_path / "ensemble-sentiment.png").stat().st_size > 0


def test_pairs_are_compared_on_words_of_some_ranks(matched, cache, tmp_path):
    changes = {"pairs": ("C1-C2",), "ranks": ("1-200", "51-150"), "random_seeds": (0,)}
    table = run("match", tmp_path, cache, **changes)
    by_ranks = {row["labels"]["ranks"]: row for row in rows_of(tmp_path) if row["metric"] == "l2"}
    whole = next(row for row in rows_of(matched[0]) if row["metric"] == "l2")
    assert [by_ranks[ranks]["num_items"] for ranks in ("1-200", "51-150")] == [200, 100]
    assert by_ranks["1-200"]["mean"] != by_ranks["51-150"]["mean"]
    assert by_ranks["1-200"]["mean"] == pytest.approx(whole["mean"], abs=whole["std"])
    assert "51-150" in table


def test_sentence_encoders_are_compared_on_test_texts(tmp_path, monkeypatch):
    def encode(name, texts, cache, *, max_pieces):
        letters = "aeiou" if name == "vowels" else "abcdefghij"
        return np.array([[1 + text.count(x) for x in letters] for text in texts], np.float32)

    monkeypatch.setattr(text_encoders, "encode", encode)
    config = sentences.get_config()
    changes = {"num_texts": 80, "encoders": ("vowels", "letters"), "random_seeds": (0, 1)}
    config.update_from_flattened_dict(changes)
    table = call(config, tmp_path, cache_dir())
    rows = {(r["dataset"], r["method"], r["metric"]): r for r in rows_of(tmp_path)}
    for dataset in ("bbc", "imdb"):
        assert rows[dataset, "procrustes", "ot"]["num_items"] == 32  # four fifths of the test half
        for method in ("concatenate", "average", "logits"):
            assert rows[dataset, method, "gain"]["num_runs"] == 2
            assert 0 <= rows[dataset, method, "accuracy"]["mean"] <= 1
    assert "| bbc " in table and "| imdb " in table


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("match", {"pairs": ("C1-C9",)}, "no embedding 'C9'"),
        ("match", {"pairs": ("C1",)}, "'C1' is not a pair"),
        ("match", {"dataset": "amazon"}, "'amazon'"),
        ("match", {"models.C1.kind": "bert"}, "no kind of C1 'bert'"),
        ("match", {"pairs": ("LSTM-C1",), "models.LSTM.init_from": "glove"}, "from 'glove'"),
        ("correlate", {"tasks": ("poetry",)}, "no task 'poetry'"),
        ("correlate", {"embeddings": ("C1", "C2")}, "number of embeddings is 2: .* at least 3"),
        ("ensemble", {"embeddings": ("C1", "C1")}, "number of embeddings is 1: .* at least 2"),
        ("match", {"ranks": ("1-9", "ten")}, "'ten' are no ranks"),
        ("match", {"num_texts": 10**6}, "num_texts is 1,000,000 of [0-9,]* texts of rotten"),
        ("match", {"num_words": 10**6}, "num_words is 1,000,000 of [0-9,]* different words"),
        ("match", {"pairs": ()}, "number of cases is 0"),
        ("match", {"random_seeds": ()}, "number of random seeds is 0"),
    ],
)
def test_a_wrong_name_is_an_error_in_one_sentence(matched, cache, tmp_path, name, wrong, message):
    with pytest.raises(UserError, match=message):
        run(name, tmp_path, cache, **wrong)
    assert not (tmp_path / "table.md").exists()
