"""Images as clouds of points (the MNIST report): data, training, evaluation, report."""

import itertools
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from jaxtyping import Array, Float, Int, UInt8
from ml_collections import ConfigDict
from sklearn.neighbors import KNeighborsClassifier
from tqdm import tqdm

from common import cli, report, sweeps, train
from common.data import idx
from common.data.images import EMBEDDED, Images, load
from common.errors import UserError
from common.parallel import map_rows
from common.workdir import Workdir, write_arrays, write_atomically, write_json
from wasserstein_embed import cloud, image_report, siamese
from wasserstein_embed.cloud import Clouds

SPLITS = {EMBEDDED: ("train+test[:1500]", "test[1500:]")}  # 4,000 and 1,000
METHODS = ("sinkhorn", "euclidean")
BLOCK = 512  # images embedded at once


class Sets(NamedTuple):
    """The images that are trained on, and those held out."""

    train: Images
    test: Images


class Pairs(NamedTuple):
    """Fixed pairs of held-out images, every other one of one class."""

    first: Int[Array, " b"]
    second: Int[Array, " b"]
    same: Array


def images(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Siamese training by Sinkhorn and by Euclidean distance; Figures 1 to 3, kNN accuracy."""
    check(config)
    sets = read(config, cache)
    rows = _collect(config, work, sets)
    table = image_report.table(config, rows)
    write_json(work.path / "results.json", rows)
    write_atomically(work.path / "table.md", table.encode())
    image_report.figures(config, work, sets.test)
    return f"{table}\n{image_report.throughput(work)}"


def sweep(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """The same over the values config.sweep_values of config.sweep_over; table and sweep.png."""
    points = sweeps.points(config, check)
    sets = read(config, cache)
    rows = []
    for value, point in points:
        swept = {"sweep_over": config.sweep_over, "sweep_value": value}
        rows += [row | swept for row in _collect(point, work, sets, f"{value}-")]
    table = image_report.sweep_table(config, rows)
    write_json(work.path / "results.json", rows)
    write_atomically(work.path / "table.md", table.encode())
    image_report.sweep_figure(config, work, rows)
    return f"{table}\n{image_report.throughput(work)}"


def check(config: ConfigDict) -> None:
    """Values that are wrong are said at the start.

    Raises:
      UserError: one of them is.
    """
    for method in config.methods:
        cli.choose(dict.fromkeys(METHODS), method, "method")
    cli.choose(dict.fromkeys(("uniform", "learned")), config.weights, "way to weight points")
    cloud.distance_of(config.distance)
    cli.positive(config, "std", "points", "dimensions", "margin", "neighbours")
    cli.positive(config, "steps", "evaluate_every", "learning_rate")
    cli.share(config, "decay_after")
    even = "an even number of pairs, half of them are of one class"
    cli.require(config, lambda pairs: pairs > 0 and pairs % 2 == 0, even, "batch", "test_pairs")


def read(config: ConfigDict, cache: Path) -> Sets:
    """Reads the two splits, by TFDS or from IDX files.

    Raises:
      UserError: sets that can't be read, or that have too few images or classes.
    """
    default = SPLITS.get(config.dataset, ("train", "test"))
    names = [config.train_split or default[0], config.test_split or default[1]]
    if config.idx:
        names = [config.train_split or "train", config.test_split or "test"]
        sets = Sets(*(idx.load(Path(config.idx), name) for name in names))
    else:
        sets = Sets(*(load(config.dataset, name, cache) for name in names))
    shapes = [part.images.shape[1:] for part in sets]
    if shapes[0] != shapes[1] or min(shapes[0][:2]) < 16:
        raise UserError(
            f"Images of {shapes[0]} and {shapes[1]} do not fit the network: it takes one size, of "
            "16 x 16 pixels at least."
        )
    for part, least in ((sets.train, config.batch), (sets.test, 2)):
        _, counts = np.unique(part.labels, return_counts=True)
        if len(part.labels) < least:
            raise UserError(
                f"The split '{part.split}' has {len(part.labels)} images, a batch {config.batch} "
                "pairs: lower config.batch or take a larger split."
            )
        if len(counts) < 2 or counts.min() < 2:
            raise UserError(
                f"The split '{part.split}' of '{config.dataset}' has {len(counts)} classes, the "
                f"smallest of {counts.min()} images: pairs need two classes or more, of two images "
                "or more each."
            )
    return sets


def _collect(config: ConfigDict, work: Workdir, sets: Sets, prefix: str = "") -> list[dict]:
    """Rows of results.json: every method and random seed, each a part of the run."""
    measured = []
    bar = tqdm(list(itertools.product(config.random_seeds, config.methods)), unit="part")
    for random_seed, method in bar:
        part = f"{prefix}seed{random_seed}-{method}"
        bar.set_description(part)
        clouds = image_report.clouds_file(part)
        compute = partial(_measure, config, work, sets, part, random_seed, method)
        shared = {"method": method, "random_seed": random_seed}
        measured += [shared | row for row in work.part(part, compute, clouds)]
        train.forget_checkpoints(work, part)
    return [image_report.row(row, config, sets) for row in report.summarise(measured)]


def _measure(
    config: ConfigDict, work: Workdir, sets: Sets, part: str, random_seed: int, method: str
) -> list[dict]:
    """Trains one method, keeps the clouds of the held-out images, and measures them."""
    settings = _settings(config, method, sets.train.images.shape[1:])
    held_out = jnp.asarray(sets.test.images)
    pairs = _test_pairs(config, sets.test)
    start, draws = jax.random.split(jax.random.key(random_seed))
    classes = siamese.by_class(sets.train.labels)
    data = siamese.Data(jnp.asarray(sets.train.images), classes, draws)
    state = train.run(
        siamese.step,
        siamese.init(settings, start),
        data,
        settings,
        num_steps=config.steps,
        chunk=config.evaluate_every,
        work=work,
        part=part,
        evaluate=_Evaluation(settings, held_out, pairs, config.evaluate_every),
    )
    known, found = (
        embed(settings.shape, state.parameters, part) for part in (data.images, held_out)
    )
    _save(work.path / image_report.clouds_file(part), found, sets.test)
    last = _of_pairs(found, pairs, settings)
    rows = [{"metric": name, "value": float(value)} for name, value in last.items()]
    for name, vote in (("euclidean", _vote_euclidean), ("sinkhorn", _vote_sinkhorn)):
        guess = vote(config, known, sets.train.labels, found)
        accuracy = float((guess == sets.test.labels).mean())
        rows.append({"metric": "knn_accuracy", "neighbours_by": name, "value": accuracy})
        logging.info("%s: kNN accuracy %.4f by %s distance", part, accuracy, name)
    return rows


def _settings(config: ConfigDict, method: str, image: tuple) -> siamese.Training:
    distance = cloud.distance_of(config.distance)
    learned = config.weights == "learned"
    return siamese.Training(
        siamese.Shape(
            tuple(image), config.points, config.dimensions, learned, config.mean, config.std
        ),
        distance if method == "sinkhorn" else None,
        config.margin,
        config.batch,
        config.steps,
        config.learning_rate,
        config.decay_after,
    )


def _test_pairs(config: ConfigDict, test: Images) -> Pairs:
    return Pairs(*siamese.draw(jax.random.key(0), siamese.by_class(test.labels), config.test_pairs))


class _Evaluation:
    """Losses and mean distances on the test pairs, and how many pairs a second were trained on."""

    def __init__(self, settings: siamese.Training, held_out, pairs: Pairs, steps: int):
        self._held_out, self._test_pairs, self._settings = held_out, pairs, settings
        self._pairs = settings.batch * steps
        self._since = None

    def __call__(self, state: siamese.State) -> dict:
        jax.block_until_ready(state)
        speed = {}
        if self._since is not None:
            speed["pairs_per_second"] = self._pairs / (time.monotonic() - self._since)
        clouds = embed(self._settings.shape, state.parameters, self._held_out)
        values = jax.device_get(_of_pairs(clouds, self._test_pairs, self._settings))
        self._since = time.monotonic()
        return values | speed


@partial(jax.jit, static_argnames="settings")
def _of_pairs(clouds: Clouds, pairs: Pairs, settings: siamese.Training) -> dict:
    distance = siamese.distances(clouds, pairs.first, pairs.second, settings.distance)
    means = siamese.means(distance, pairs.same)
    loss = siamese.contrastive(distance, pairs.same, settings.margin)
    return {"test_loss": loss} | {f"test_{name}": value for name, value in means.items()}


@partial(jax.jit, static_argnames="shape")
def embed(shape: siamese.Shape, parameters, images: UInt8[Array, "n h w c"]) -> Clouds:
    """The clouds of any number of images, streamed in blocks over all devices."""
    return map_rows(
        lambda rows, parameters: siamese.embed(shape, parameters, rows),
        images,
        parameters,
        block=BLOCK,
    )


def _vote_euclidean(config, known: Clouds, labels, found: Clouds) -> Int[np.ndarray, " n"]:
    classifier = KNeighborsClassifier(min(config.neighbours, len(labels)))
    classifier.fit(_flat(known), labels)
    return classifier.predict(_flat(found))


def _vote_sinkhorn(config, known: Clouds, labels, found: Clouds) -> Int[np.ndarray, " n"]:
    """As the Euclidean vote: most votes, the lower class where there are as many."""
    distance = cloud.distance_of(config.distance)
    _, near = cloud.nearest(found, known, distance, min(config.neighbours, len(labels)))
    return np.array([np.bincount(votes).argmax() for votes in labels[np.asarray(near)]])


def _flat(clouds: Clouds) -> Float[np.ndarray, "n d"]:
    return np.asarray(clouds.points).reshape(len(clouds.points), -1)


def _save(path: Path, clouds: Clouds, images: Images) -> None:
    """Keeps the clouds of the held-out images with their classes."""
    arrays = {"points": clouds.points, "labels": images.labels}
    if clouds.weights is not None:
        arrays["weights"] = clouds.weights
    write_arrays(path, arrays)
