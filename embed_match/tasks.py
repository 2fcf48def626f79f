"""Downstream tasks: texts as means of word vectors, a linear classifier on them, and ensembles."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int
from sklearn.linear_model import LogisticRegression

from common.data import bbc, corpus
from embed_match import compare
from embed_match.embeddings import Embedding, Text

SHARE = 0.8  # of the texts to train on and of those to test on, that a random seed draws


class Task(NamedTuple):
    """Labelled texts as word counts.

    Attributes:
      counts: of each word of the vocabulary.
      labels: classes.
      training: texts to train on; the others are to test.
    """

    counts: scipy.sparse.csr_array
    labels: Int[np.ndarray, " t"]
    training: Bool[np.ndarray, " t"]


def sentiment(text: Text, cache: Path) -> Task:
    """The reviews that the embeddings are trained on; the LSTM saw labels of the same half."""
    del cache
    of_text, word = corpus.members(text.corpus.tokens, text.gap)
    shape = len(text.labels), len(text.corpus.words)
    counts = scipy.sparse.coo_array((np.ones(len(word)), (of_text, word)), shape=shape)
    return Task(counts.tocsr(), text.labels, text.training)


def news(text: Text, cache: Path) -> Task:
    """Headlines of BBC articles in five classes, a random half to train on."""
    articles = bbc.load(cache)
    numbers = corpus.number(articles.headlines, text.corpus.words)
    of_text = np.repeat(np.arange(len(numbers)), [len(words) for words in numbers])
    word = np.concatenate(numbers)
    shape = len(numbers), len(text.corpus.words)
    counts = scipy.sparse.coo_array((np.ones(len(word)), (of_text, word)), shape=shape)
    order = np.random.default_rng(0).permutation(len(numbers))
    return Task(counts.tocsr(), articles.labels, order < len(numbers) // 2)


TASKS = {"sentiment": sentiment, "news": news}


def unit(embedding: Embedding) -> Float[np.ndarray, "V d"]:
    """Rows of length one, zero for words that it lacks."""
    length = np.linalg.norm(embedding.vectors, axis=1, keepdims=True)
    return embedding.vectors / np.where(embedding.known[:, None], length, 1)


def features(
    task: Task, table: Float[np.ndarray, "V d"], known: Bool[np.ndarray, " V"]
) -> Float[np.ndarray, "t d"]:
    """The mean over each text of its known words' rows; zero without any."""
    count = task.counts @ known
    return (task.counts @ table) / np.maximum(1, count)[:, None]


def average(a: Embedding, b: Embedding) -> tuple[Float[np.ndarray, "V d"], Bool[np.ndarray, " V"]]:
    """The mean of both after the rotation of the smaller one; a word of one alone keeps its row."""
    if a.vectors.shape[1] < b.vectors.shape[1]:
        a, b = b, a
    both = a.known & b.known
    aligner = compare.rotation(b.vectors[both], a.vectors[both])
    total = np.zeros(a.vectors.shape)
    total[a.known] += aligner.normalise_fixed(a.vectors[a.known])
    total[b.known] += aligner.apply(b.vectors[b.known])
    return total / np.maximum(1, a.known * 1 + b.known)[:, None], a.known | b.known


def draw(task: Task, random_seed: int) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " m"]]:
    """Texts to train on and to test on, a random four fifths of those there are."""
    rng = np.random.default_rng(random_seed)
    sides = np.flatnonzero(task.training), np.flatnonzero(~task.training)
    return tuple(rng.permutation(side)[: max(1, int(SHARE * len(side)))] for side in sides)


def scores(
    x: Float[np.ndarray, "t d"],
    task: Task,
    train: Int[np.ndarray, " n"],
    test: Int[np.ndarray, " m"],
    inverse_penalty: float,
) -> Float[np.ndarray, "m c"]:
    """Logits of the classes for test texts, from logistic regression on the training texts."""
    model = LogisticRegression(C=inverse_penalty, solver="newton-cholesky", max_iter=200)
    found = model.fit(x[train], task.labels[train]).decision_function(x[test])
    return np.stack([-found, found], axis=1) / 2 if found.ndim == 1 else found


def accuracy(logits: Float[np.ndarray, "m c"], task: Task, test: Int[np.ndarray, " m"]) -> float:
    """Share of test texts whose class has the largest logit."""
    classes = np.unique(task.labels[task.training])
    return float(np.mean(classes[logits.argmax(axis=1)] == task.labels[test]))
