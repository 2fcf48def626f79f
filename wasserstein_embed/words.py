"""Words as clouds, trained on context windows and compared with another embedding space."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.ndimage import maximum_filter
from scipy.stats import spearmanr

from common import train
from common.data import paired_spaces
from common.data.corpus import Corpus
from common.errors import UserError
from common.linear import unit
from common.workdir import Workdir
from wasserstein_embed import word_embed
from wasserstein_embed.word_embed import Data, Settings

pair_distances = jax.jit(word_embed.pair_distances, static_argnames="settings")
BLOCK_PAIRS = 2_000  # pairs whose distances are computed together
GRID = 81  # grid points per axis of a density; odd, so that the centre is one of them
MAX_MODES = 3  # modes of the density of a word
MODE_WORDS = 3  # words at each mode


class GoldSimilarities(NamedTuple):
    """Random pairs of words, given by their numbers, and their cosine in a reference space."""

    first: Int[np.ndarray, " p"]
    second: Int[np.ndarray, " p"]
    cosine: Float[np.ndarray, " p"]


def gold_similarities(
    reference_space: str, words: Sequence[str], num_pairs: int, cache: Path
) -> GoldSimilarities:
    """Draws pairs among the words that the reference space has.

    Args:
      reference_space: a space by name or path, see `paired_spaces.load_space`.
      words: the vocabulary.
      num_pairs: number of draws; pairs of a word with itself are left out.
      cache: the data cache.

    Raises:
      UserError: as `paired_spaces.load_space`, or fewer than two words in common.
    """
    space = paired_spaces.load_space(reference_space, cache)
    row_of = {word: row for row, word in enumerate(space.words)}
    known = np.array([i for i, word in enumerate(words) if word in row_of])
    if len(known) < 2:
        raise UserError(
            f"The space '{reference_space}' has {len(known)} words of the texts: choose a space of "
            "words for config.reference_space."
        )
    first, second = np.random.default_rng(0).integers(len(known), size=(2, num_pairs))
    distinct = first != second
    first, second = known[first[distinct]], known[second[distinct]]
    vectors = unit(space.vectors)
    x, y = (vectors[[row_of[words[i]] for i in side]] for side in (first, second))
    return GoldSimilarities(first, second, np.sum(x * y, axis=1))


def train_embedding(
    settings: Settings,
    corpus: Corpus,
    random_seed: int,
    *,
    steps: int,
    checkpoint_every: int,
    work: Workdir,
    part: str,
) -> Float[np.ndarray, "V M k"]:
    """Trains and returns the clouds of all words.

    Args:
      settings: of the training.
      corpus: the texts, with gaps of `settings.window`.
      random_seed: of the parameters and the batches.
      steps: number of steps, of `settings.updates_per_step` updates each.
      checkpoint_every: steps between checkpoints.
      work: the run's folder.
      part: name of the training.
    """
    batches, start = jax.random.split(jax.random.key(random_seed))
    cumulative = np.cumsum(corpus.frequencies**word_embed.NEGATIVE_POWER)
    cumulative = jnp.asarray(cumulative / cumulative[-1], jnp.float32)
    parameters = train.run(
        word_embed.step,
        word_embed.init(settings, len(corpus.words), start),
        Data(tokens=jnp.asarray(corpus.tokens), cumulative=cumulative, key=batches),
        settings,
        num_steps=steps,
        chunk=checkpoint_every,
        work=work,
        part=part,
    ).parameters
    return np.asarray(word_embed.embed(parameters.words, parameters.output, settings))


def rank_correlation(
    x: Float[np.ndarray, "V M k"], gold: GoldSimilarities, settings: Settings
) -> float:
    """Spearman's correlation of negative distances with the gold similarities."""
    return float(spearmanr(-_distances(x, gold.first, gold.second, settings), gold.cosine)[0])


def nearest_words(
    x: Float[np.ndarray, "V M k"],
    words: Sequence[str],
    queries: Sequence[str],
    num_neighbours: int,
    settings: Settings,
) -> dict[str, list[str]]:
    """The nearest words of each query that is in the vocabulary, nearest first."""
    number = {word: i for i, word in enumerate(words)}
    everything = np.arange(len(words))
    found = {}
    for query in (number[word] for word in queries if word in number):
        distance = _distances(x, np.full(len(words), query), everything, settings)
        distance[query] = np.inf
        nearest = np.argsort(distance, kind="stable")[:num_neighbours]
        found[words[query]] = [words[i] for i in nearest]
    return found


def densities(
    x: Float[np.ndarray, "V M 2"], words: Sequence[str], chosen: Sequence[str]
) -> dict[str, dict]:
    """The density of the points of each chosen word, and the words at its modes.

    The density is a Gaussian kernel density whose bandwidth is a tenth of the standard deviation of
    all points. A mode is a local maximum above a fifth of the global one. The words at a mode are
    those whose own densities are largest there.

    Returns:
      Word -> `points`, `axes` and `density` on a grid, and `modes` of a `place` and `words` each.
    """
    width = 0.1 * float(np.mean(np.std(x.reshape(-1, 2), axis=0)))
    number = {word: i for i, word in enumerate(words)}
    found = {}
    for word in (word for word in chosen if word in number):
        points = x[number[word]]
        low, high = points.min(axis=0) - 4 * width, points.max(axis=0) + 4 * width
        axes = [np.linspace(low[c], high[c], GRID) for c in range(2)]
        places = np.stack(np.meshgrid(*axes), axis=-1)
        density = _density(points, places[:, :, None], width)
        is_peak = (density == maximum_filter(density, 9)) & (density > 0.2 * density.max())
        peaks = sorted(np.argwhere(is_peak), key=lambda place: -density[tuple(place)])
        modes = []
        for i, j in peaks[:MAX_MODES]:
            of_words = _density(x, places[i, j], width)
            of_words[number[word]] = 0
            nearest = np.argsort(-of_words, kind="stable")[:MODE_WORDS]
            modes.append({"place": places[i, j].tolist(), "words": [words[k] for k in nearest]})
        found[word] = {
            "points": points.tolist(),
            "axes": [axis.tolist() for axis in axes],
            "density": np.round(density, 4).tolist(),
            "modes": modes,
        }
    return found


def _distances(x, first, second, settings):
    """Distances between words `first` and `second`, computed in blocks."""
    blocks = [slice(start, start + BLOCK_PAIRS) for start in range(0, len(first), BLOCK_PAIRS)]
    return np.concatenate(
        [pair_distances(x[first[rows]], x[second[rows]], settings) for rows in blocks]
    )


def _density(points, places, width):
    """Kernel density of points [..., M, 2] at places that broadcast against them."""
    return np.exp(-np.sum((points - places) ** 2, axis=-1) / (2 * width**2)).mean(axis=-1)
