"""Siamese training of clouds of images: kNN accuracy, and Figures 1 to 3 of the report."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from common.errors import check_choice, check_count
from common.files import read_arrays
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from wasserstein_embed import images, siamese
from wasserstein_embed.cloud import Distance
from wasserstein_embed.images import Splits
from wasserstein_embed.reports import images as report

METHODS = ("sinkhorn", "euclidean", "cosine")


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Trains and measures each method with each random seed; tables, Figures 1 to 3."""
    splits = images.read(config.dataset, config.train_split, config.test_split, cache)
    case = case_of("images", config, splits)
    grid = tasks.grid([case], config.methods, config.random_seeds)
    rows = measured(grid, work)
    names = {m: [task.name for task in grid if task.method == m] for m in config.methods}
    labels = np.concatenate([splits.test.labels, splits.train.labels])
    clouds = {
        method: report.in_plane(read_arrays(work.path / images.clouds_file(first)))
        for method, (first, *_) in names.items()
    }
    figures = {
        "training": report.training_figure(work.metrics.records(), names, config.margin),
        "clouds": report.clouds_figure(clouds, labels),
        "nine": report.nine_figure(clouds, splits.test, config.figure_class),
    }
    return records.finish(work, rows, report, figures=figures)


def case_of(name: str, config: ConfigDict, splits: Splits, **fields: Any) -> Case:
    """The images with the settings of a config; only the training is random."""
    trainings = {method: _training(method, config, splits) for method in config.methods}
    evaluation, num_train = settings(images.Evaluation, config), len(splits.train.labels)
    check_count("num_neighbours", evaluation.num_neighbours, num_train, "training images")
    check_count("num_test_pairs", evaluation.num_test_pairs, least=2)
    labels = {"num_points": config.num_points, "num_train": num_train}
    labels |= {"train_split": splits.train.split, "test_split": splits.test.split}
    fields |= {"experiment": config.experiment, "dataset": config.dataset, "labels": labels}
    fields |= {"num_items": len(splits.test.labels), "dim": config.dimensions}
    fields["proxy"] = config.dataset != "mnist"
    return Case(name, fields, lambda random_seed: (splits, trainings, evaluation))


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


def measured(grid: Iterable[Task], work: Workdir) -> list[Row]:
    """Trains networks and measures them on the held-out images; means over the random seeds."""

    def measure(task: Task) -> tuple[list[Row], dict[str, Any]]:
        splits, trainings, evaluation = task.case.problem(task.random_seed)
        means, accuracies = images.train_and_measure(
            trainings[task.method], splits, task.seed, evaluation, work=work, task=task.name
        )
        rows = [task.row(metric, value) for metric, value in means.items()]
        for name, accuracy in accuracies.items():
            rows.append(task.row("knn_accuracy", accuracy, labels={"neighbours_by": name}))
        return rows, {}

    rows = tasks.run(grid, measure, work, arrays=lambda task: images.clouds_file(task.name)).rows
    return results.averaged(rows)
