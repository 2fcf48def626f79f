"""Siamese training of clouds of images: kNN accuracy, and Figures 1 to 3 of the report."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from ml_collections import ConfigDict

from common.errors import check_choice, check_count
from common.files import read_arrays
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.settings import sweep as points_of_sweep
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from wasserstein_embed import images, siamese
from wasserstein_embed.cloud import Distance
from wasserstein_embed.images import Splits
from wasserstein_embed.reports import images as report

METHODS = ("sinkhorn", "euclidean", "cosine")


class Problem(NamedTuple):
    """Images, the settings of each method's training, and those of the evaluation."""

    splits: Splits
    trainings: Mapping[str, siamese.Training]
    evaluation: images.Evaluation


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Trains and measures each method with each random seed; tables, Figures 1 to 3."""
    splits = images.read(config.dataset, config.train_split, config.test_split, cache)
    case = _case("images", config, splits)
    grid = tasks.grid([case], config.methods, config.random_seeds)
    rows = _rows(grid, work)
    names = {m: [task.name for task in grid if task.method == m] for m in config.methods}
    files = {method: work.path / images.clouds_file(first) for method, (first, *_) in names.items()}
    labels = np.concatenate([splits.test.labels, splits.train.labels])
    clouds = {method: _clouds_in_plane(file) for method, file in files.items()}
    figures = {
        "training": report.training_figure(work.metrics.records(), names, config.margin),
        "clouds": report.clouds_figure(clouds, labels),
        "nine": report.nine_figure(clouds, splits.test, config.figure_class),
    }
    return records.finish(work, rows, results.joined(report.tables(rows)), figures)


def _clouds_in_plane(file: Path) -> Float[np.ndarray, "n M 2"]:
    """The clouds of the held-out images, then those of the training images."""
    arrays = read_arrays(file)
    return report.in_plane(np.concatenate([arrays["points"], arrays["train_points"]]))


def sweep(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """The same with each of `config.sweep_values` as `config.sweep_over`; a table and a figure."""
    splits = images.read(config.dataset, config.train_split, config.test_split, cache)
    cases = [
        _case(str(value), point, splits, sweep_over=config.sweep_over, sweep_value=value)
        for value, point in points_of_sweep(config)
    ]
    rows = _rows(tasks.grid(cases, config.methods, config.random_seeds), work)
    table = results.joined(report.tables(rows))
    return records.finish(work, rows, table, {"sweep": report.sweep_figure(rows)})


def _case(name: str, config: ConfigDict, splits: Splits, **fields: Any) -> Case:
    """The images with the settings of a config; only the training is random."""
    trainings = {method: _training(method, config, splits) for method in config.methods}
    problem = Problem(splits, trainings, settings(images.Evaluation, config))
    num_train = len(splits.train.labels)
    check_count("num_neighbours", problem.evaluation.num_neighbours, num_train, "training images")
    check_count("num_test_pairs", problem.evaluation.num_test_pairs, least=2)
    fields |= {
        "experiment": config.experiment,
        "dataset": config.dataset,
        "num_items": len(splits.test.labels),
        "dim": config.dimensions,
        "proxy": config.dataset != "mnist",
        "labels": {
            "num_points": config.num_points,
            "num_train": num_train,
            "train_split": splits.train.split,
            "test_split": splits.test.split,
        },
    }
    return Case(name, fields, lambda random_seed: problem)


def _training(method: str, config: ConfigDict, splits: Splits) -> siamese.Training:
    check_choice("method", method, METHODS)
    image_shape, cosine = splits.train.images.shape[1:], method == "cosine"
    return settings(
        siamese.Training,
        config,
        network=settings(siamese.Network, config, image_shape=image_shape, unit_norm=cosine),
        distance=settings(Distance, config.distance) if method == "sinkhorn" else None,
        temperature=config.temperature if cosine else None,
    )


def _rows(grid: Iterable[Task], work: Workdir) -> list[Row]:
    """Means over the random seeds, with the report's number where it has one."""
    measured = tasks.run(
        grid, partial(_measure, work), work, arrays=lambda task: images.clouds_file(task.name)
    )
    return results.averaged(map(report.beside_published, measured.rows))


def _measure(work: Workdir, task: Task) -> tuple[list[Row], dict]:
    """Trains a network and measures it on the held-out images; nothing is to be noted."""
    problem = task.case.problem(task.random_seed)
    training = problem.trainings[task.method]
    scores = images.train_and_measure(
        training, problem.splits, task.random_seed, problem.evaluation, work=work, task=task.name
    )
    rows = [task.row(metric, value) for metric, value in scores.pairs.items()]
    for name, accuracy in scores.accuracy.items():
        rows.append(task.row("knn_accuracy", accuracy, labels={"neighbours_by": name}))
    return rows, {}
