"""Words as clouds, trained on context windows and compared with human judgements."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.ndimage import maximum_filter

from common import cbow
from common.data.sets import bbc, corpus, reviews, word_similarity
from common.data.sets.corpus import Corpus
from common.errors import UserError, check_count
from common.linear import unit
from common.metrics import spearman
from common.run import train
from common.run.workdir import Workdir
from wasserstein_embed import word_embed
from wasserstein_embed.word_embed import Data, Settings

NEWS = "bbc"  # articles; the other sources are reviews
HELD_OUT = 0.05  # fraction of the texts whose loss is logged during a training
HELD_OUT_BATCHES = 10  # over which that loss is averaged
BLOCK_PAIRS = 2_000  # pairs whose distances are computed together
GRID = 81  # grid points per axis of a density; odd, so that the centre is one of them
MAX_MODES = 3  # modes of the density of a word
NEAR_WORDS = 40  # nearest words of a word, which are divided among its modes
MODE_WORDS = 3  # words at each mode

# Rows of the pairs whose words are in the vocabulary, and scores of human judges.
Judged = tuple[Int[np.ndarray, "n 2"], Float[np.ndarray, " n"]]

pair_distances = jax.jit(word_embed.pair_distances, static_argnames="settings")
batch_loss = jax.jit(word_embed.batch_loss, static_argnames="settings")


class Texts(NamedTuple):
    """Texts in random order, of which the last ones are held out."""

    corpus: Corpus  # of the training texts, with gaps of the window; its words are those of all
    training: Int[np.ndarray, " n"]  # tokens with few of the frequent words
    held_out: Int[np.ndarray, " m"]  # likewise


class Mode(NamedTuple):
    """A mode of the density of a word's points, and the nearest words that have points there."""

    place: Float[np.ndarray, "2"]
    words: list[str]


class Density(NamedTuple):
    """The points of a word in the plane, and their density on a grid."""

    points: Float[np.ndarray, "M 2"]
    x: Float[np.ndarray, " g"]
    y: Float[np.ndarray, " g"]
    values: Float[np.ndarray, "g g"]
    modes: list[Mode]  # the largest first


def read(
    sources: Sequence[str],
    cache: Path,
    *,
    num_texts: int,
    num_words: int,
    subsample: float,
    window: int,
) -> Texts:
    """Reads texts, shuffles them, and encodes them with their `num_words` most frequent words.

    `sources` are `bbc` or names of `common.data.sets.reviews`; `num_texts` may be 0 for all.
    Occurrences of words of a frequency above `subsample` are removed (`corpus.subsampled`), and
    texts are a `window` apart. UserError: an unknown source, or as its reader.
    """
    texts = [text for source in sources for text in _source(source, cache)]
    check_count("num_texts", num_texts, len(texts), f"texts of {', '.join(sources)}", least=0)
    order = np.random.default_rng(0).permutation(len(texts))[: num_texts or len(texts)]
    whole = corpus.build([texts[i] for i in order], num_words=num_words, gap=window)
    tokens = corpus.subsampled(whole, subsample, random_seed=0)
    gaps, gaps_of_whole = (np.flatnonzero(x < 0) for x in (tokens, whole.tokens))
    last = np.searchsorted(gaps, (1 - HELD_OUT) * len(tokens))
    cut, cut_of_whole = gaps[last], gaps_of_whole[last]  # subsampling keeps all gaps
    corpus_of_training = whole._replace(tokens=whole.tokens[: cut_of_whole + window])
    return Texts(corpus_of_training, tokens[: cut + window], tokens[cut:])


def judged_pairs(names: Sequence[str], words: Sequence[str], cache: Path) -> dict[str, Judged]:
    """The pairs of each similarity set of which a vocabulary has both words; UserError: < 2."""
    judged = {}
    for name in names:
        pairs, scores = word_similarity.load(name, cache)
        rows = word_similarity.lookup(pairs, words)
        known = (rows >= 0).all(axis=1)
        if known.sum() < 2:
            raise UserError(
                f"The {len(words):,} words of the texts have {known.sum()} of the pairs of "
                f"'{name}': set config.num_words to more words."
            )
        judged[name] = rows[known], scores[known]
    return judged


def train_embedding(
    settings: Settings,
    texts: Texts,
    random_seed: int,
    *,
    checkpoint_every: int,
    work: Workdir,
    task: str,
) -> Float[np.ndarray, "V M k"]:
    """Trains and returns the clouds of all words; logs the loss on the held-out texts.

    The random seed is that of the parameters and the batches.
    """
    of_batches, of_parameters = jax.random.split(jax.random.key(random_seed))
    cumulative = np.cumsum(texts.corpus.frequencies**word_embed.NEGATIVE_POWER)
    cumulative = jnp.asarray(cumulative / cumulative[-1], jnp.float32)
    data = Data(jnp.asarray(texts.training), cumulative, of_batches)
    held_out = Data(jnp.asarray(texts.held_out), cumulative, jax.random.key(0))
    keys = jax.random.split(held_out.key, HELD_OUT_BATCHES)
    batches = [word_embed.sample(held_out, key, settings) for key in keys]

    def evaluate(state: train.State) -> dict:
        losses = [batch_loss(state.parameters, batch, settings)[0] for batch in batches]
        return {"held_out_loss": float(np.mean(jax.device_get(losses)))}

    parameters = train.run(
        word_embed.step,
        word_embed.init(settings, len(texts.corpus.words), of_parameters),
        data,
        settings,
        num_steps=settings.steps,
        chunk=checkpoint_every,
        work=work,
        part=task,
        evaluate=evaluate,
    ).parameters
    return np.asarray(word_embed.embed(parameters.words, parameters.output, settings))


def train_cbow(
    settings: cbow.Settings, texts: Texts, random_seed: int, *, work: Workdir, task: str
) -> Float[np.ndarray, "V 1 d"]:
    """Trains CBOW on the same texts; distances of its unit vectors are in the order of cosines."""
    keys = jax.random.split(jax.random.key(random_seed))
    return unit(cbow.train(texts.corpus, settings, keys, work=work, part=task))[:, None]


def rank_correlations(
    x: Float[np.ndarray, "V M k"], judged: Mapping[str, Judged], settings: Settings
) -> dict[str, float]:
    """Set -> Spearman's correlation of negative distances with the scores of human judges."""
    return {
        name: spearman(-_distances(x, rows[:, 0], rows[:, 1], settings), scores)
        for name, (rows, scores) in judged.items()
    }


def nearest_words(
    x: Float[np.ndarray, "V M k"],
    words: Sequence[str],
    queries: Sequence[str],
    num_neighbours: int,
    settings: Settings,
) -> dict[str, list[str]]:
    """The nearest words of each query that is in the vocabulary, nearest first."""
    number = {word: i for i, word in enumerate(words)}
    return {
        query: [words[int(i)] for i in _nearest(x, number[query], num_neighbours, settings)]
        for query in queries
        if query in number
    }


def densities(
    x: Float[np.ndarray, "V M 2"], words: Sequence[str], chosen: Sequence[str], settings: Settings
) -> dict[str, Density]:
    """The density of the points of each chosen word that is known, and the words at its modes.

    The density is a Gaussian kernel density whose bandwidth is a tenth of the standard deviation of
    all points. A mode is a local maximum above a fifth of the global one. Each of the `NEAR_WORDS`
    nearest words belongs to the mode at which its own density is largest; shown are the nearest
    of each mode.
    """
    width = 0.1 * float(np.mean(np.std(x.reshape(-1, 2), axis=0)))
    number = {word: i for i, word in enumerate(words)}
    densities = {}
    for word in (word for word in chosen if word in number):
        points = x[number[word]]
        low, high = points.min(axis=0) - 4 * width, points.max(axis=0) + 4 * width
        across, up = np.linspace(low, high, GRID).T
        places = np.stack(np.meshgrid(across, up), axis=-1)
        density = _density(points, places[:, :, None], width)
        is_peak = (density == maximum_filter(density, 9)) & (density > 0.2 * density.max())
        peaks = sorted(np.argwhere(is_peak), key=lambda place: -density[tuple(place)])
        modes = np.array([places[i, j] for i, j in peaks[:MAX_MODES]])
        near = _nearest(x, number[word], NEAR_WORDS, settings)
        nearest_mode = _density(x[near][:, None], modes[None, :, None], width).argmax(axis=1)
        shown = [near[nearest_mode == mode][:MODE_WORDS] for mode in range(len(modes))]
        listed = [Mode(m, [words[int(i)] for i in at]) for m, at in zip(modes, shown, strict=True)]
        densities[word] = Density(points, across, up, density, listed)
    return densities


def _source(name: str, cache: Path) -> list[str]:
    if name == NEWS:
        articles = bbc.load(cache)
        pairs = zip(articles.headlines, articles.bodies, strict=True)
        return [f"{headline}\n{body}" for headline, body in pairs]
    return reviews.load(name, cache).texts


def _nearest(
    x: Float[np.ndarray, "V M k"], query: int, count: int, settings: Settings
) -> Int[np.ndarray, " n"]:
    """Numbers of the words nearest to a word, itself excluded, nearest first."""
    distance = _distances(x, np.full(len(x), query), np.arange(len(x)), settings)
    distance[query] = np.inf
    return np.argsort(distance, kind="stable")[:-1][:count]


def _distances(
    x: Float[np.ndarray, "V M k"],
    first: Int[np.ndarray, " b"],
    second: Int[np.ndarray, " b"],
    settings: Settings,
) -> Float[np.ndarray, " b"]:
    """Distances between words `first` and `second`, computed in blocks."""
    blocks = [slice(start, start + BLOCK_PAIRS) for start in range(0, len(first), BLOCK_PAIRS)]
    return np.concatenate(
        [pair_distances(x[first[rows]], x[second[rows]], settings) for rows in blocks]
    )


def _density(
    points: Float[np.ndarray, "*a M 2"], places: Float[np.ndarray, "*b 2"], width: float
) -> Float[np.ndarray, "*c"]:
    """Kernel density of points at places that broadcast against them."""
    return np.exp(-np.sum((points - places) ** 2, axis=-1) / (2 * width**2)).mean(axis=-1)
