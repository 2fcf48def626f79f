"""Words as clouds: trained on context windows, compared with another space, looked at."""

import itertools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict
from scipy.stats import spearmanr
from tqdm import tqdm

from common import cli, report, train
from common.data import corpus, reviews
from common.data import words as spaces
from common.data.corpus import Corpus
from common.errors import UserError
from common.workdir import Workdir, write_atomically, write_json
from wasserstein_embed import word_embed, words_report
from wasserstein_embed.word_embed import Data, Settings

BLOCK = 2_000  # pairs compared at once


def words(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Clouds of each dimension and vectors of the same size: neighbours, correlation, pictures."""
    _check(config)
    texts = reviews.load(config.dataset, cache)
    read = corpus.build(
        texts.in_turn().texts[: config.num_texts],
        num_words=config.num_words,
        subsample=config.subsample,
        gap=config.window,
        random_seed=0,
    )
    judge = _judge(config, read, cache)
    measured, found = [], {}
    tasks = list(itertools.product(config.geometries, config.dimensions, config.random_seeds))
    bar = tqdm(tasks, desc="embedding words", unit="training")
    for geometry, dimension, random_seed in bar:
        name = f"{geometry}_{_size(config, geometry, dimension)}"
        bar.set_postfix_str(f"{name}, random seed {random_seed}")
        settings = _settings(config, geometry, dimension)
        part = f"{name}-seed{random_seed}"
        result = work.part(
            part,
            lambda: _fit(settings, read, judge, config, random_seed, work, part),  # noqa: B023
        )
        train.forget_checkpoints(work, part)
        found[part] = result
        shared = {"method": name, "dim": config.points * dimension, "random_seed": random_seed}
        measured.append(shared | {"metric": "spearman", "value": result["spearman"]})
    rows = [_row(row, config, read) for row in report.summarise(measured)]
    full, short = words_report.tables(config, rows, found, read)
    write_json(work.path / "results.json", rows)
    write_atomically(work.path / "table.md", full.encode())
    report.save_figure(words_report.curves(work, list(found)), work.path / "training.png")
    for part, result in found.items():
        if "figure" in result:
            figure = words_report.densities(result["figure"], part)
            report.save_figure(figure, work.path / f"words-{part}.png")
    return short


def _check(config: ConfigDict) -> None:
    """Wrong names and values are said at the start."""
    for geometry in config.geometries:
        cli.choose(dict.fromkeys(("wasserstein", "euclidean")), geometry, "geometry")
    cli.choose(spaces.SPACES, config.reference, "reference space")
    cli.at_least(config, 2, "num_words")
    cli.positive(config, "num_texts", "window", "points", "dimensions", "hidden")
    cli.positive(config, "margin", "epsilon", "iterations", "learning_rate")
    cli.positive(config, "batch", "updates", "steps", "chunk", "compared_pairs", "neighbours")


def _size(config: ConfigDict, geometry: str, dimension: int) -> str:
    return f"r{dimension}" if geometry == "wasserstein" else str(config.points * dimension)


def _judge(config: ConfigDict, read: Corpus, cache: Path) -> dict:
    """Random pairs of words that the reference space has, and their cosines there."""
    space = spaces.load(config.reference, spaces.NUM_WORDS, cache)
    row_of = {word: row for row, word in enumerate(space.words)}
    known = [i for i, word in enumerate(read.words) if word in row_of]
    if len(known) < 2:
        raise UserError(f"The texts share fewer than two words with '{config.reference}'.")
    rng = np.random.default_rng(0)
    first, second = rng.integers(len(known), size=(2, config.compared_pairs))
    apart = first != second
    first, second = np.array(known)[first[apart]], np.array(known)[second[apart]]
    unit = space.vectors / np.linalg.norm(space.vectors, axis=1, keepdims=True)
    x, y = (unit[[row_of[read.words[i]] for i in side]] for side in (first, second))
    return {"first": first, "second": second, "cosine": np.sum(x * y, axis=1), "known": len(known)}


def _settings(config: ConfigDict, geometry: str, dimension: int) -> Settings:
    named = {name: config[name] for name in Settings._fields if name in config}
    return Settings(**named, geometry=geometry, dimension=dimension)


def _fit(
    settings: Settings,
    read: Corpus,
    judge: dict,
    config: ConfigDict,
    random_seed: int,
    work: Workdir,
    part: str,
) -> dict:
    """Trains one embedding: its correlation, neighbours, throughput and what a picture needs."""
    draws, start = jax.random.split(jax.random.key(random_seed))
    share = np.cumsum(read.share**word_embed.NEGATIVE_POWER)
    data = Data(jnp.asarray(read.tokens), jnp.asarray(share / share[-1], jnp.float32), draws)
    resumed = (work.path / "checkpoints" / part).exists()
    begun = time.perf_counter()
    state = train.run(
        word_embed.step,
        word_embed.init(settings, len(read.words), start),
        data,
        settings,
        num_steps=config.steps,
        chunk=config.chunk,
        work=work,
        part=part,
    )
    seconds = time.perf_counter() - begun
    pairs = 2 * config.steps * settings.updates * settings.batch
    x = word_embed.clouds(state.parameters, settings)
    distance = _distances(x, judge["first"], judge["second"], settings)
    found = {
        "spearman": float(spearmanr(-distance, judge["cosine"])[0]),
        "known": judge["known"],
        "neighbours": _neighbours(x, read, config, settings),
        "pairs_per_s": None if resumed else pairs / seconds,
    }
    if settings.geometry == "wasserstein" and settings.dimension == 2:
        found["figure"] = words_report.picture(np.asarray(x), read.words, config.figure_words)
    return found


def _distances(x, first, second, settings: Settings) -> np.ndarray:
    blocks = [slice(start, start + BLOCK) for start in range(0, len(first), BLOCK)]
    found = [word_embed.between(x, first[rows], second[rows], settings) for rows in blocks]
    return np.concatenate([np.asarray(block) for block in found])


def _neighbours(x, read: Corpus, config: ConfigDict, settings: Settings) -> dict[str, list[str]]:
    """The nearest words of each query that is in the vocabulary, nearest first."""
    number = {word: i for i, word in enumerate(read.words)}
    everything = np.arange(len(read.words))
    found = {}
    for query in (number[word] for word in config.query_words if word in number):
        distance = _distances(x, np.full(len(everything), query), everything, settings)
        distance[query] = np.inf
        nearest = np.argsort(distance, kind="stable")[: config.neighbours]
        found[read.words[query]] = [read.words[i] for i in nearest]
    return found


def _row(row: dict, config: ConfigDict, read: Corpus) -> dict:
    """A summarised row in the form of results.json."""
    return row | {
        "experiment": config.experiment,
        "dataset": config.dataset,
        "source": config.dataset,
        "target": config.reference,
        "num_words": len(read.words),
        "paper_value": None,
        "standin": True,
    }
