import numpy as np
import pytest
import tensorflow_datasets as tfds
import tensorflow_datasets.text.multi_nli  # not listed without TensorFlow
from ml_collections import ConfigDict

from common.data import bbc, encoders
from common.data.wheels import cache_dir
from common.errors import UserError
from lpl import nli_data, nli_edits


def config(**values):
    base = {"max_train": 300, "max_validation": 60, "max_test": 90}
    return ConfigDict(base | {"encoder": "minilm", "max_pieces": 32, "smoothing": 1e-3} | values)


def parts(corpus):
    return [corpus.train, corpus.validation, *corpus.tests.values()]


@pytest.fixture(scope="module", params=["bbc_pairs", "synthetic"])
def standin(request):
    return request.param, nli_data.load(request.param, config(), cache_dir())


def test_parts_are_balanced_and_share_no_text(standin):
    name, corpus = standin
    assert corpus.standin
    assert list(corpus.tests) == (["test"] if name == "bbc_pairs" else ["matched", "mismatched"])
    seen = set()
    for part, count in zip(parts(corpus), (300, 60, 90, 90), strict=False):
        np.testing.assert_array_equal(np.bincount(part.labels), [count // 3] * 3)
        texts = {*part.premises, *part.hypotheses}
        assert not texts & seen
        seen |= texts


def test_a_set_is_the_same_in_every_run(standin):
    name, corpus = standin
    again = nli_data.load(name, config(), cache_dir())
    assert again.train.premises == corpus.train.premises
    assert again.train.hypotheses == corpus.train.hypotheses


def test_labels_of_bbc_pairs_are_those_of_the_articles():
    articles = bbc.load(cache_dir())
    of_opening = {bbc.opening(body): row for row, body in enumerate(articles.bodies)}
    of_headline = {headline: row for row, headline in enumerate(articles.headlines)}
    corpus = nli_data.load("bbc_pairs", config(), cache_dir())
    for premise, hypothesis, label in zip(*corpus.tests["test"], strict=True):
        first, second = of_opening[premise], of_headline[hypothesis]
        same_class = articles.labels[first] == articles.labels[second]
        assert label == (0 if first == second else 1 if same_class else 2)


def test_labels_of_synthetic_pairs_are_those_of_the_edits():
    corpus = nli_data.load("synthetic", config(), cache_dir())
    for part in parts(corpus):
        for premise, hypothesis, label in zip(*part, strict=True):
            entailed = nli_edits.drop_modifier(premise) == hypothesis
            negated = hypothesis == nli_edits.negate(premise)
            negated |= premise == nli_edits.negate(hypothesis)
            assert label == (0 if entailed else 2 if negated else 1)
        swapped = ["not" in premise.split() for premise in part.premises]
        assert 0 < np.mean(swapped) < 0.5  # 'not' in a hypothesis alone does not tell


def test_pairs_become_rows_of_a_table(monkeypatch):
    asked = []

    def lengths(name, texts, cache, **settings):
        asked.append((name, settings["max_pieces"]))
        return np.array([[len(text), 1.0] for text in texts], np.float32)

    monkeypatch.setattr(encoders, "encode", lengths)
    corpus = nli_data.load("bbc_pairs", config(), cache_dir())
    table, rows = nli_data.encode(corpus, config(), cache_dir())
    assert asked == [("minilm", 32)] and list(rows) == ["train", "validation", "test"]
    np.testing.assert_allclose(np.linalg.norm(table, axis=1), 1, rtol=1e-6)
    found = table[rows["test"].hypotheses]
    lengths = [len(text) for text in corpus.tests["test"].hypotheses]
    np.testing.assert_allclose(found[:, 0] / found[:, 1], lengths, rtol=1e-5)


class Source(list):
    """What TFDS gives for a split."""


def examples(count, prefix):
    return Source(
        {
            "premise": f"{prefix} premise {i}".encode(),
            "hypothesis": f"{prefix} hypothesis {i}".encode(),
            "label": i % 4 - 1,  # -1: the annotators did not agree
        }
        for i in range(count)
    )


@pytest.mark.parametrize(
    ("name", "title", "tests"),
    [
        ("snli", "SNLI", {"test": "test"}),
        (
            "multi_nli",
            "MultiNLI",
            {"matched": "validation_matched", "mismatched": "validation_mismatched"},
        ),
    ],
)
def test_sets_of_tfds(tmp_path, name, title, tests):
    (tmp_path / "tfds" / name).mkdir(parents=True)  # as if it had been prepared
    asked = []

    def source(builder, *args, **kwargs):
        asked.append(kwargs.get("split") or args[0])
        return examples(80, asked[-1])

    with tfds.testing.mock_data(as_data_source_fn=source):
        corpus = nli_data.load(name, config(max_train=40, max_validation=40), tmp_path)
    assert corpus.title == title and not corpus.standin
    splits = {"train": "train", "validation": "validation" if name == "snli" else "train"}
    assert set(asked) == {*splits.values(), *tests.values()}
    assert list(corpus.tests) == list(tests)
    everything = {"train": corpus.train, "validation": corpus.validation} | corpus.tests
    for part, pairs in everything.items():
        assert len(pairs.labels) == len(pairs.premises) <= 80 and set(pairs.labels) == {0, 1, 2}
        for premise, hypothesis, label in zip(*pairs, strict=True):
            split, _, number = premise.split()
            assert split == (splits | tests)[part] and hypothesis.split()[::2] == [split, number]
            assert label == int(number) % 4 - 1
    assert not {*corpus.train.premises} & {*corpus.validation.premises}


def test_a_set_that_is_not_prepared(tmp_path):
    with pytest.raises(UserError, match="pip install tensorflow, or lay the set"):
        nli_data.load("multi_nli", config(), tmp_path)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("mnli", {}, "no set of sentence pairs 'mnli': choose one of bbc_pairs, synthetic, snli"),
        ("bbc_pairs", {"max_test": 2}, "lacks a label: raise max_train"),
        ("bbc_pairs", {"max_validation": 9_000}, "lacks a label"),
        ("synthetic", {"max_train": 0}, "lacks a label"),
    ],
)
def test_what_does_not_fit(name, values, message):
    with pytest.raises(UserError, match=message):
        nli_data.load(name, config(**values), cache_dir())
