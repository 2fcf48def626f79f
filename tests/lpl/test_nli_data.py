import numpy as np
import pytest
import tensorflow_datasets as tfds
import tensorflow_datasets.text.multi_nli  # not listed without TensorFlow

from common.data.packages import cache_dir
from common.data.sets import bbc
from common.encoders import texts as text_encoders
from common.errors import UserError
from lpl import nli_data, synthetic_nli

MULTI_NLI_TESTS = ("matched", "mismatched")


def load(name, cache=None, **limits):
    limits = {"max_train": 300, "max_validation": 60, "max_test": 90} | limits
    return nli_data.load(name, nli_data.Limits(**limits), cache or cache_dir())


@pytest.fixture(scope="module", params=["bbc_pairs", "synthetic", "synthetic_reviews"])
def proxy(request):
    return request.param, load(request.param)


@pytest.mark.network
def test_parts_are_balanced_and_share_no_text(proxy):
    name, corpus = proxy
    assert corpus.proxy and load(name).train[:2] == corpus.train[:2]  # the same in every run
    assert list(corpus.tests) == (["test"] if name == "bbc_pairs" else ["matched", "mismatched"])
    seen = set()
    for part, count in zip(corpus.parts().values(), (300, 60, 90, 90), strict=False):
        np.testing.assert_array_equal(np.bincount(part.labels), [count // 3] * 3)
        texts = {*part.premises, *part.hypotheses}
        assert not texts & seen
        seen |= texts


@pytest.mark.network
@pytest.mark.parametrize(("name", "most"), [("bbc_pairs", 1), ("bbc_passages", 8)])
def test_labels_of_bbc_pairs_follow_from_the_articles(name, most):
    articles, articles_of = bbc.load(cache_dir()), {}
    for row, body in enumerate(articles.bodies):
        for passage in body.split("\n")[:most]:
            articles_of.setdefault(passage, set()).add(row)
    of_headline = {headline: row for row, headline in enumerate(articles.headlines)}
    test = load(name, max_validation=240, max_test=240).tests["test"]
    for premise, hypothesis, label in zip(*test, strict=True):
        second, firsts = of_headline[hypothesis], articles_of[premise]
        same_class = {articles.labels[first] == articles.labels[second] for first in firsts}
        assert second in firsts if label == 0 else (label == 1) in same_class
    of_label = [{h for h, y in zip(*test[1:], strict=True) if y == label} for label in range(3)]
    assert len(set(test.premises)) > 2 * len(of_label[0]) or most == 1  # passages of an article


@pytest.mark.network
def test_too_few_articles_for_a_pair_are_an_error():
    with pytest.raises(UserError, match="raise max_train, max_validation or max_test"):
        load("bbc_pairs", max_validation=3)  # one article, which has no other one


@pytest.mark.network
def test_labels_of_synthetic_pairs_follow_from_the_edits():
    for part in load("synthetic").parts().values():
        for premise, hypothesis, label in zip(*part, strict=True):
            entailed = synthetic_nli.drop_modifier(premise) == hypothesis
            negated = hypothesis == synthetic_nli.negate(premise)
            negated |= premise == synthetic_nli.negate(hypothesis)
            assert label == (0 if entailed else 2 if negated else 1)
        swapped = ["not" in premise.split() for premise in part.premises]
        assert 0 < np.mean(swapped) < 0.5  # "not" in the hypothesis does not give the label away


@pytest.mark.network
def test_pairs_are_encoded_as_rows_of_unit_vectors(monkeypatch):
    asked = []

    def lengths(name, texts, cache, **settings):
        asked.append((name, settings["max_pieces"]))
        return np.array([[len(text), 1.0] for text in texts], np.float32)

    monkeypatch.setattr(text_encoders, "encode", lengths)
    corpus = load("bbc_pairs")
    vectors, rows = nli_data.encode(corpus, "minilm", cache_dir(), max_pieces=32, smoothing=1e-3)
    assert asked == [("minilm", 32)] and list(rows) == ["train", "validation", "test"]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    hypotheses = vectors[rows["test"].hypotheses]
    lengths = [len(text) for text in corpus.tests["test"].hypotheses]
    np.testing.assert_allclose(hypotheses[:, 0] / hypotheses[:, 1], lengths, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "title", "tests"),
    [
        ("snli", "SNLI", {"test": "test"}),
        ("multi_nli", "MultiNLI", {name: f"validation_{name}" for name in MULTI_NLI_TESTS}),
    ],
)
def test_splits_are_read_without_unlabelled_pairs(tmp_path, name, title, tests):
    (tmp_path / "tfds" / name).mkdir(parents=True)  # as if it had been prepared
    asked, rows = [], []

    def source(builder, *args, **kwargs):
        asked.append(kwargs.get("split") or args[0])
        for i in range(80):
            texts = {x: f"{asked[-1]} {x} {i}".encode() for x in ("premise", "hypothesis")}
            rows.append(texts | {"label": i % 4 - 1})  # -1: the annotators did not agree
        return rows[-80:]

    with tfds.testing.mock_data(as_data_source_fn=source):
        corpus = load(name, tmp_path, max_train=40, max_validation=40)
    assert corpus.title == title and not corpus.proxy
    splits = {"train": "train", "validation": "validation" if name == "snli" else "train"}
    assert set(asked) == {*splits.values(), *tests.values()}
    assert list(corpus.tests) == list(tests)
    for part, pairs in corpus.parts().items():
        assert len(pairs.labels) == len(pairs.premises) <= 80 and set(pairs.labels) == {0, 1, 2}
        for premise, hypothesis, label in zip(*pairs, strict=True):
            split, _, number = premise.split()
            assert split == (splits | tests)[part] and hypothesis.split()[::2] == [split, number]
            assert label == int(number) % 4 - 1
    assert not {*corpus.train.premises} & {*corpus.validation.premises}


def test_a_set_that_tfds_has_not_prepared_is_refused(tmp_path):
    with pytest.raises(UserError, match="pip install tensorflow, or copy the data set"):
        load("multi_nli", tmp_path)
