"""CBOW against gensim: words per second, and the quality of the vectors, on the same text.

Both train with the settings of configs/embed_match/trained.py. Quality is the agreement with
pretrained GloVe on the words in common: the rank correlation of cosines over random pairs of words,
and the fraction of the ten nearest neighbours that are the same.
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from scipy.stats import spearmanr

from benchmarks.harness import Benchmark, Case, Implementation, Work, cores
from common import cbow
from common.data.packages import cache_dir
from common.data.sets import corpus
from common.linear import unit
from common.retrieval import top_k
from common.run.settings import settings
from common.spaces import paired_spaces
from configs.embed_match.match import get_config
from embed_match import embeddings

RANDOM_SEED = 1
NUM_PAIRS = 200_000
NEIGHBOURS = 10


class Task(NamedTuple):
    """A text and the hyper-parameters."""

    text: embeddings.Text
    settings: cbow.Settings


def load(num_texts: int, epochs: int) -> Task:
    """The first reviews of IMDB."""
    config = get_config()
    models = embeddings.models(settings(embeddings.Values, config))
    text = embeddings.read(config.dataset, num_texts, config.num_words, models, cache_dir())
    return Task(text, dataclasses.replace(models["C1"].settings, epochs=epochs))


def work(task: Task) -> Work:
    """The work of one position, times the number of words before subsampling.

    The mean of w + 1 vectors and its gradient take 2 (w + 1) d operations; products with the word
    and its negative samples and two updates by each take 6 (1 + negatives) d. Bytes: all of these
    rows once.
    """
    dim, window, negatives = task.settings.dim, task.settings.window, task.settings.negatives
    count = float(np.sum(task.text.corpus.tokens >= 0)) * task.settings.epochs
    flops = count * dim * (2 * (window + 1) + 6 * (1 + negatives))
    return Work(flops, 8 * count * (window + negatives + 2) * dim, count)


def _ours(task):
    settings = task.settings
    data_key, init_key = jax.random.split(jax.random.key(RANDOM_SEED))
    data = cbow.data(task.text.corpus, settings, data_key)
    step = jax.jit(cbow.step, static_argnames="settings", donate_argnames="state")

    def call():
        state = cbow.init(settings, len(task.text.corpus.words), init_key)
        for index in range(settings.epochs * settings.shards):
            state, _ = step(state, index, data, settings)
        return state.inputs

    return call


def _gensim(task):
    from gensim.models import Word2Vec

    text_index, word = corpus.text_and_word_ids(task.text.corpus.tokens, task.text.gap)
    ends = np.flatnonzero(np.diff(text_index)) + 1
    texts = [[task.text.corpus.words[i] for i in part] for part in np.split(word, ends)]

    def call():
        model = Word2Vec(
            vector_size=task.settings.dim,
            window=task.settings.window,
            negative=task.settings.negatives,
            sample=task.settings.subsample,
            epochs=task.settings.epochs,
            workers=cores(),
            seed=RANDOM_SEED,
            min_count=1,
            sg=0,
        )
        model.build_vocab(texts)
        model.train(texts, total_examples=len(texts), epochs=task.settings.epochs)
        return np.stack([model.wv[word] for word in task.text.corpus.words])

    return call


def score(task, vectors: Float[np.ndarray, "V d"]) -> dict[str, float]:
    """Agreement with pretrained GloVe."""
    vocabulary, vectors = task.text.corpus.words, np.asarray(vectors)
    space = paired_spaces.load_space("glove", cache_dir())
    row_of = {word: row for row, word in enumerate(space.words)}
    known = [i for i, word in enumerate(vocabulary) if word in row_of]
    pretrained = space.vectors[[row_of[vocabulary[i]] for i in known]]
    x, y = unit(vectors[known]), unit(pretrained)
    first, second = np.random.default_rng(0).integers(len(known), size=(2, NUM_PAIRS))
    first, second = first[first != second], second[first != second]
    cosines = [np.sum(z[first] * z[second], axis=1) for z in (x, y)]
    nearest = [np.asarray(top_k(z, z, NEIGHBOURS + 1)[1])[:, 1:] for z in (x, y)]  # not itself
    same = [len(np.intersect1d(*lists)) / NEIGHBOURS for lists in zip(*nearest, strict=True)]
    return {"correlation": float(spearmanr(*cosines)[0]), "neighbours": float(np.mean(same))}


def case(num_texts: int, **options) -> Case:
    """One epoch on the given number of reviews."""
    return Case(str(num_texts), num_texts, partial(load, num_texts, 1), work, **options)


BENCHMARK = Benchmark(
    title="CBOW on IMDB, 5,000 words of 100 dimensions, window 5",
    goal=">= 1, else the reason",
    note=(
        "gensim uses as many workers as there are cores, ours the CPU devices named beside the "
        "machine, one or two; building gensim's vocabulary is timed, as is our subsampling. FLOPs: "
        "2 (w + 1) d + 6 (1 + negatives) d for each word, before subsampling. Score: agreement "
        "with pretrained GloVe after one epoch."
    ),
    cases=(case(1_000), case(6_000), case(24_902, rounds=3, memory=True)),
    quick=case(1_000, memory=True),
    implementations={
        "isthmus": Implementation(_ours),
        "gensim": Implementation(_gensim, requires=("gensim",)),
    },
    score=score,
    axis="reviews",
    unit="words/s",
)
