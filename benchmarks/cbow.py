"""CBOW against gensim: words per second, and the quality of the vectors, on the same text.

Both train with the settings of configs/embed_match/trained.py. Quality is the agreement with
pretrained GloVe on the words in common: the rank correlation of cosines over random pairs of words,
and the fraction of the ten nearest neighbours that are the same.
"""

import dataclasses

import jax
import numpy as np
from jaxtyping import Float
from scipy.stats import spearmanr

from benchmarks.harness import Case, Implementation, Work, cores
from common import cbow
from common.data.packages import cache_dir
from common.data.sets import corpus
from common.linear import unit
from common.retrieval import top_k
from common.spaces import paired_spaces
from configs.embed_match.match import get_config
from embed_match import embeddings
from embed_match.experiments import models

RANDOM_SEED = 1
NUM_PAIRS = 200_000
NEIGHBOURS = 10


def load(num_texts: int) -> tuple[embeddings.Text, cbow.Settings]:
    """The first reviews of IMDB, for one epoch."""
    config = get_config()
    known = models(config)
    text = embeddings.read(config.dataset, num_texts, config.num_words, known, cache_dir())
    return text, dataclasses.replace(known["C1"].settings, epochs=1)


def work(task) -> Work:
    """The work of one position, times the number of words before subsampling.

    The mean of w + 1 vectors and its gradient take 2 (w + 1) d operations; products with the word
    and its negative samples and two updates by each take 6 (1 + negatives) d. Bytes: all of these
    rows once.
    """
    text, values = task
    count = float(np.sum(text.corpus.tokens >= 0))
    flops = count * values.dim * (2 * (values.window + 1) + 6 * (1 + values.negatives))
    return Work(flops, 8 * count * (values.window + values.negatives + 2) * values.dim)


def _ours(task):
    text, values = task
    data_key, init_key = jax.random.split(jax.random.key(RANDOM_SEED))
    data = cbow.data(text.corpus, values, data_key)
    step = jax.jit(cbow.step, static_argnames="settings", donate_argnames="state")

    def call():
        state = cbow.init(values, len(text.corpus.words), init_key)
        for index in range(values.shards):
            state, _ = step(state, index, data, values)
        return state.inputs

    return call


def _gensim(task):
    from gensim.models import Word2Vec

    text, values = task
    words = text.corpus.words
    text_index, word = corpus.text_and_word_ids(text.corpus.tokens, text.gap)
    ends = np.flatnonzero(np.diff(text_index)) + 1
    texts = [[words[i] for i in part] for part in np.split(word, ends)]

    def call():
        model = Word2Vec(
            vector_size=values.dim,
            window=values.window,
            negative=values.negatives,
            sample=values.subsample,
            epochs=1,
            workers=cores(),
            seed=RANDOM_SEED,
            min_count=1,
            sg=0,
        )
        model.build_vocab(texts)
        model.train(texts, total_examples=len(texts), epochs=1)
        return np.stack([model.wv[word] for word in words])

    return call


def score(task, vectors: Float[np.ndarray, "V d"]) -> dict[str, float]:
    """Agreement with pretrained GloVe."""
    vocabulary, vectors = task[0].corpus.words, np.asarray(vectors)
    space = paired_spaces.load_space("glove", cache_dir())
    row_of = {word: row for row, word in enumerate(space.words)}
    known = [i for i, word in enumerate(vocabulary) if word in row_of]
    x, y = unit(vectors[known]), unit(space.vectors[[row_of[vocabulary[i]] for i in known]])
    first, second = np.random.default_rng(0).integers(len(known), size=(2, NUM_PAIRS))
    first, second = first[first != second], second[first != second]
    cosines = [np.sum(z[first] * z[second], axis=1) for z in (x, y)]
    nearest = [np.asarray(top_k(z, z, NEIGHBOURS + 1)[1])[:, 1:] for z in (x, y)]  # not itself
    same = [len(np.intersect1d(*lists)) / NEIGHBOURS for lists in zip(*nearest, strict=True)]
    return {"correlation": float(spearmanr(*cosines)[0]), "neighbours": float(np.mean(same))}


TITLE = "CBOW on IMDB, 5,000 words of 100 dimensions, window 5"
GOAL = ">= 1, else the reason"
NOTE = (
    "gensim uses as many workers as there are cores, ours the CPU devices named beside the "
    "machine, one or two; building gensim's vocabulary is timed, as is our subsampling. FLOPs: "
    "2 (w + 1) d + 6 (1 + negatives) d for each word, before subsampling. Score: agreement "
    "with pretrained GloVe after one epoch."
)
CASES = (
    Case("1000", 1_000, (1_000,)),
    Case("6000", 6_000, (6_000,)),
    Case("24902", 24_902, (24_902,), rounds=3, memory=True),
)
QUICK = Case("300", 300, (300,))
IMPLEMENTATIONS = {
    "isthmus": Implementation(_ours),
    "gensim": Implementation(_gensim, requires=("gensim",)),
}
