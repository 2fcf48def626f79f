"""Downstream tasks: texts as means of word vectors, a linear classifier on them, and ensembles."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int
from sklearn.linear_model import LogisticRegression

from common.data.sets import bbc, corpus, reviews
from common.errors import check_count
from common.linear import unit
from embed_match import compare
from embed_match.embeddings import Embedding, Text

MIN_TEXTS = 10  # of which the training texts of a random run have more than one class
SAMPLED = 0.8  # fraction of the training texts and of the test texts in a random run


class LabelledTexts(NamedTuple):
    """Labelled texts as word counts."""

    counts: scipy.sparse.csr_array  # [t, V]
    labels: Int[np.ndarray, " t"]
    training: Bool[np.ndarray, " t"]  # whether a text is a training text, not a test text


def sentiment(text: Text, cache: Path) -> LabelledTexts:
    """The reviews that the embeddings are trained on, with the split that the LSTM uses."""
    del cache
    index, word = corpus.text_and_word_ids(text.corpus.tokens, text.gap)
    shape = len(text.labels), len(text.corpus.words)
    return LabelledTexts(_counts(index, word, shape), text.labels, text.training)


def news(text: Text, cache: Path) -> LabelledTexts:
    """Headlines of BBC articles in five classes; a random half are training texts."""
    articles = bbc.load(cache)
    words = corpus.word_ids(articles.headlines, text.corpus.words)
    index = np.repeat(np.arange(len(words)), [len(headline) for headline in words])
    shape = len(words), len(text.corpus.words)
    order = np.random.default_rng(0).permutation(len(words))
    counts = _counts(index, np.concatenate(words), shape)
    return LabelledTexts(counts, articles.labels, order < len(words) // 2)


def sentences(name: str, num_texts: int, cache: Path) -> tuple[list[str], LabelledTexts]:
    """Texts whose vectors are given, and a task in which each text is a word of its own.

    They are of `imdb`, whose labels alternate, or random headlines of `bbc`; the first half are
    training texts. UserError: an unknown name, or texts that can't be split and classified.
    """
    if name == "bbc":
        articles = bbc.load(cache)
        order = np.random.default_rng(0).permutation(len(articles.labels))
        texts, labels = [articles.headlines[i] for i in order], articles.labels[order]
    else:
        texts, labels = reviews.load(name, cache).interleaved()
    check_count("num_texts", num_texts, len(texts), f"texts of {name}", least=MIN_TEXTS)
    texts, labels = texts[:num_texts], labels[:num_texts]
    counts = scipy.sparse.csr_array(scipy.sparse.eye_array(len(texts), format="csr"))
    return texts, LabelledTexts(counts, labels, np.arange(len(texts)) < len(texts) // 2)


def _counts(text, word, shape) -> scipy.sparse.csr_array:
    return scipy.sparse.coo_array((np.ones(len(word)), (text, word)), shape=shape).tocsr()


TASKS = {"sentiment": sentiment, "news": news}


def is_proxy(name: str, dataset: str) -> bool:
    """Whether the texts of a task, or the training texts, replace those of the poster."""
    return dataset != "imdb" or name == "news"


def features(
    texts: LabelledTexts, vectors: Float[np.ndarray, "V d"], known: Bool[np.ndarray, " V"]
) -> Float[np.ndarray, "t d"]:
    """The mean of the vectors of the known words of each text; zero for a text without any."""
    count = texts.counts @ known
    return (texts.counts @ vectors) / np.maximum(1, count)[:, None]


def average(
    x: Embedding, y: Embedding, fit: Int[np.ndarray, " m"] | slice = slice(None)
) -> tuple[Float[np.ndarray, "V d"], Bool[np.ndarray, " V"]]:
    """The mean of two embeddings, the one of fewer dimensions rotated onto the other.

    The rotation is fitted on those of the rows `fit` that the two embeddings share.

    Returns:
      The vectors, for a word that one embedding lacks those of the other; and the known words.
    """
    if x.vectors.shape[1] < y.vectors.shape[1]:
        x, y = y, x
    shared = np.arange(len(x.known))[fit]
    shared = shared[x.known[shared] & y.known[shared]]
    aligner = compare.rotation(y.vectors[shared], x.vectors[shared])
    total = np.zeros(x.vectors.shape)
    total[x.known] += aligner.normalise_target(x.vectors[x.known])
    total[y.known] += aligner.apply(y.vectors[y.known])
    return total / np.maximum(1, x.known * 1 + y.known)[:, None], x.known | y.known


def split(
    texts: LabelledTexts, random_seed: int
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " m"]]:
    """Random subsets of the training texts and of the test texts, four fifths of each."""
    rng = np.random.default_rng(random_seed)
    parts = np.flatnonzero(texts.training), np.flatnonzero(~texts.training)
    samples = [rng.permutation(part)[: max(1, int(SAMPLED * len(part)))] for part in parts]
    return samples[0], samples[1]


def logits(
    x: Float[np.ndarray, "t d"],
    texts: LabelledTexts,
    train: Int[np.ndarray, " n"],
    test: Int[np.ndarray, " m"],
    inverse_penalty: float,
) -> Float[np.ndarray, "m c"]:
    """Class logits of the rows `test`, from logistic regression on the rows `train`.

    `x` are the features of all texts, and `inverse_penalty` is C of scikit-learn.
    """
    model = LogisticRegression(C=inverse_penalty, solver="newton-cholesky", max_iter=200)
    model.fit(x[train], texts.labels[train])
    values = model.decision_function(x[test])
    return np.stack([-values, values], axis=1) / 2 if values.ndim == 1 else values


def accuracy(
    scores: Float[np.ndarray, "m c"], texts: LabelledTexts, test: Int[np.ndarray, " m"]
) -> float:
    """Fraction of the test texts whose own class has the largest logit."""
    classes = np.unique(texts.labels[texts.training])
    return float(np.mean(classes[scores.argmax(axis=1)] == texts.labels[test]))


def evaluate(
    texts: LabelledTexts, space: Embedding, random_seed: int, inverse_penalty: float
) -> float:
    """Accuracy of a classifier of texts, on the subsets of `split`."""
    x = features(texts, unit(space.vectors), space.known)
    train, test = split(texts, random_seed)
    return accuracy(logits(x, texts, train, test, inverse_penalty), texts, test)


class Score(NamedTuple):
    """A value of an ensemble of two embeddings, or of a single one, which is source and target."""

    source: str
    target: str
    method: str
    metric: str
    value: float


def ensembles(
    texts: LabelledTexts,
    spaces: Mapping[str, Embedding],
    random_seed: int,
    inverse_penalty: float,
    of_texts: bool = False,
) -> list[Score]:
    """Accuracy of single embeddings and of three ensembles of each pair (poster, Figure 6).

    The ensembles are: features concatenated, embeddings averaged after rotation, logits averaged.
    If the embeddings are those of texts, not of words, the rotation is fitted on the training texts
    alone. `inverse_penalty` is C of scikit-learn's LogisticRegression.

    Returns:
      The `accuracy` of single embeddings, whose method is `member`, and of the ensembles; `gain` is
      the accuracy of an ensemble above that of its better member.
    """
    train, test = split(texts, random_seed)
    fit = train if of_texts else slice(None)

    def classify(features):
        return logits(features, texts, train, test, inverse_penalty)

    x = {name: features(texts, unit(space.vectors), space.known) for name, space in spaces.items()}
    single = {name: classify(part) for name, part in x.items()}
    member = {name: accuracy(values, texts, test) for name, values in single.items()}
    scores = [Score(name, name, "member", "accuracy", value) for name, value in member.items()]
    for a, b in itertools.combinations(x, 2):
        ensembles = {
            "concatenate": classify(np.concatenate([x[a], x[b]], axis=1)),
            "average": classify(features(texts, *average(spaces[a], spaces[b], fit))),
            "logits": (single[a] + single[b]) / 2,
        }
        for method, values in ensembles.items():
            value = accuracy(values, texts, test)
            gain = value - max(member[a], member[b])
            scores.append(Score(a, b, method, "accuracy", value))
            scores.append(Score(a, b, method, "gain", gain))
    return scores
