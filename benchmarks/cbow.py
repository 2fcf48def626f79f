"""CBOW beside gensim's: words a second, and how good the vectors are, on the same text.

Both train with the settings of configs/embed_match/trained.py. Quality is agreement with pretrained
GloVe on shared words: rank correlation of cosines over random pairs, and the share of common
nearest neighbours.
"""

from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from ml_collections import ConfigDict
from scipy.stats import spearmanr

from benchmarks.harness import Case, Side, Subject, Work, cores
from common.data import corpus, words
from common.data.wheels import cache_dir
from common.retrieval import top_k
from configs.embed_match.match import get_config
from embed_match import cbow, embeddings

RANDOM_SEED = 1
PAIRS = 200_000
NEIGHBOURS = 10


class Task(NamedTuple):
    """The text and the settings."""

    text: embeddings.Text
    values: ConfigDict


def load(num_texts: int, epochs: int) -> Task:
    """The first reviews."""
    config = get_config()
    config.num_texts = num_texts
    text = embeddings.read(config, cache_dir())
    return Task(text, config.cbow.to_dict() | {"epochs": epochs})


def work(task: Task) -> Work:
    """What one place needs by itself, times the words, of which subsampling leaves fewer.

    The mean of w + 1 words and its gradient to each, 2 (w + 1) d; products with the word and its
    negatives and two updates by each, 6 (1 + negatives) d. Bytes: all of these rows once.
    """
    dim, window, negatives = (task.values[name] for name in ("dim", "window", "negatives"))
    count = float(np.sum(task.text.corpus.tokens >= 0)) * task.values["epochs"]
    a_word = dim * (2 * (window + 1) + 6 * (1 + negatives))
    return Work(count * a_word, 8 * count * (window + negatives + 2) * dim, count)


def _ours(task):
    settings = cbow.Settings(**{name: task.values[name] for name in cbow.Settings._fields})
    draws, start = jax.random.split(jax.random.key(RANDOM_SEED))
    data = cbow.data(task.text.corpus, task.values["subsample"], settings, draws)
    step = jax.jit(cbow.step, static_argnames="settings", donate_argnames="state")

    def call():
        state = cbow.init(settings, len(task.text.corpus.words), start)
        for index in range(settings.epochs * settings.pieces):
            state, _ = step(state, index, data, settings)
        return state.inputs

    return call


def _gensim(task):
    from gensim.models import Word2Vec

    of_text, word = corpus.members(task.text.corpus.tokens, task.text.gap)
    ends = np.flatnonzero(np.diff(of_text)) + 1
    texts = [[task.text.corpus.words[i] for i in part] for part in np.split(word, ends)]
    values = task.values

    def call():
        model = Word2Vec(
            vector_size=values["dim"],
            window=values["window"],
            negative=values["negatives"],
            sample=values["subsample"],
            epochs=values["epochs"],
            workers=cores(),
            seed=RANDOM_SEED,
            min_count=1,
            sg=0,
        )
        model.build_vocab(texts)
        model.train(texts, total_examples=len(texts), epochs=values["epochs"])
        return np.stack([model.wv[word] for word in task.text.corpus.words])

    return call


def score(task, vectors: Float[np.ndarray, "V d"]) -> dict[str, float]:
    """Correlation and neighbour overlap with pretrained GloVe."""
    text, vectors = task.text, np.asarray(vectors)
    space = words.load("glove", words.NUM_WORDS, cache_dir())
    row_of = {word: row for row, word in enumerate(space.words)}
    known = [i for i, word in enumerate(text.corpus.words) if word in row_of]
    other = space.vectors[[row_of[text.corpus.words[i]] for i in known]]
    x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (vectors[known], other))
    first, second = np.random.default_rng(0).integers(len(known), size=(2, PAIRS))
    first, second = first[first != second], second[first != second]
    cosines = [np.sum(z[first] * z[second], axis=1) for z in (x, y)]
    near = [np.asarray(top_k(z, z, NEIGHBOURS + 1)[1])[:, 1:] for z in (x, y)]  # the first: itself
    shared = [len(np.intersect1d(*lists)) / NEIGHBOURS for lists in zip(*near, strict=True)]
    return {"correlation": float(spearmanr(*cosines)[0]), "neighbours": float(np.mean(shared))}


def case(num_texts: int, **options) -> Case:
    """One pass through so many reviews."""
    return Case(str(num_texts), num_texts, partial(load, num_texts, 1), work, **options)


SUBJECT = Subject(
    title="CBOW on IMDB, 5,000 words of 100 numbers, window 5",
    goal=">= 1, else the reason",
    note=(
        "gensim has as many workers as there are cores; building its vocabulary counts, as our "
        "thinning does. FLOPs: 2 (w + 1) d + 6 (1 + negatives) d a word, before subsampling. "
        "Quality: agreement with pretrained GloVe, after one pass."
    ),
    cases=(case(1_000), case(6_000), case(25_000, rounds=3, memory=True)),
    quick=case(1_000, memory=True),
    sides={"isthmus": Side(_ours), "gensim": Side(_gensim, needs="gensim")},
    score=score,
    axis="reviews",
    unit="words/s",
)
