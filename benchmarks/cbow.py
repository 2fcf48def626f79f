"""CBOW beside gensim's: words a second, and how good the vectors are, on the same text.

  python -m benchmarks.cbow --epochs=5 --workers=2

gensim is no dependency of this project: install it to run this (pip install gensim). Both train
with the settings of configs/embed_match/trained.py. Quality is agreement with pretrained GloVe on
shared words: rank correlation of cosines over random pairs, and the share of common nearest
neighbours.
"""

import time

import jax
import numpy as np
from absl import app, flags
from jaxtyping import Float
from scipy.stats import spearmanr

from common.data import corpus, words
from common.data.wheels import cache_dir
from common.errors import UserError
from common.retrieval import top_k
from configs.embed_match.match import get_config
from embed_match import cbow, embeddings

EPOCHS = flags.DEFINE_integer("epochs", 5, "Passes through the text.")
WORKERS = flags.DEFINE_integer("workers", 2, "gensim's threads.")
NUM_TEXTS = flags.DEFINE_integer("num_texts", 25_000, "Reviews.")
RANDOM_SEED = flags.DEFINE_integer("random_seed", 1, "Of both.")
PAIRS = 200_000
NEIGHBOURS = 10


def ours(text: embeddings.Text, values: dict) -> tuple[float, Float[np.ndarray, "V d"]]:
    """Seconds, compilation included, and vectors."""
    settings = cbow.Settings(**{name: values[name] for name in cbow.Settings._fields})
    draws, start = jax.random.split(jax.random.key(RANDOM_SEED.value))
    began = time.perf_counter()
    data = cbow.data(text.corpus, values["subsample"], settings, draws)
    state = cbow.init(settings, len(text.corpus.words), start)
    step = jax.jit(cbow.step, static_argnames="settings", donate_argnames="state")
    for index in range(settings.epochs * settings.pieces):
        state, _ = step(state, index, data, settings)
    vectors = np.asarray(state.inputs)
    return time.perf_counter() - began, vectors


def gensim(text: embeddings.Text, values: dict) -> tuple[float, Float[np.ndarray, "V d"]]:
    """Likewise.

    Raises:
      UserError: gensim is not installed.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise UserError("gensim is not installed: pip install gensim to compare.") from error
    of_text, word = corpus.members(text.corpus.tokens, text.gap)
    ends = np.flatnonzero(np.diff(of_text)) + 1
    texts = [[text.corpus.words[i] for i in part] for part in np.split(word, ends)]
    began = time.perf_counter()
    model = Word2Vec(
        texts,
        vector_size=values["dim"],
        window=values["window"],
        negative=values["negatives"],
        sample=values["subsample"],
        epochs=values["epochs"],
        workers=WORKERS.value,
        seed=RANDOM_SEED.value,
        min_count=1,
        sg=0,
    )
    seconds = time.perf_counter() - began
    return seconds, np.stack([model.wv[word] for word in text.corpus.words])


def quality(text: embeddings.Text, vectors: Float[np.ndarray, "V d"]) -> tuple[float, float]:
    """Correlation and neighbour overlap with pretrained GloVe."""
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
    return float(spearmanr(*cosines)[0]), float(np.mean(shared))


def main(argv: list[str]) -> None:
    """Trains both and prints a line each."""
    del argv
    config = get_config()
    config.num_texts = NUM_TEXTS.value
    text = embeddings.read(config, cache_dir())
    values = config.cbow.to_dict() | {"epochs": EPOCHS.value}
    total = EPOCHS.value * int(np.sum(text.corpus.tokens >= 0))
    print(f"{total // EPOCHS.value:,} words, {EPOCHS.value} epochs")
    for name, train in (("isthmus", ours), ("gensim", gensim)):
        seconds, vectors = train(text, values)
        correlation, overlap = quality(text, vectors)
        print(
            f"{name:8s} {seconds:6.1f} s, {total / seconds:9,.0f} words/s, "
            f"correlation {correlation:.3f}, neighbours shared {overlap:.3f}"
        )


if __name__ == "__main__":
    app.run(main)
