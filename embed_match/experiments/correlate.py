"""Figure 5: distance after rotation against the difference in accuracy, for all pairs."""

import dataclasses
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from common.errors import check_choice, check_count
from common.run import records, results, tasks
from common.run.results import Row, frame, select
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from embed_match import compare, downstream
from embed_match.embeddings import in_common
from embed_match.experiments import random_runs
from embed_match.reports import correlate as report
from embed_match.reports import shared


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Measures the distance of each pair and the accuracy of each embedding, and correlates."""
    # Three embeddings have three pairs, and fewer no correlation.
    check_count("The number of embeddings", len(set(config.embeddings)), least=3)
    for name in config.tasks:
        check_choice("task", name, downstream.TASKS)
    trained = random_runs(config, config.embeddings, work, cache)
    fields = {"experiment": config.experiment}

    def pair_case(source: str, target: str) -> Case:
        about = {"dataset": config.dataset, "proxy": config.dataset != "imdb"}
        about |= {"source": source, "target": target}
        name = f"distance-{source}-{target}"
        pair = source, target
        return Case(name, fields | about, lambda seed: in_common(trained.spaces[seed], *pair))

    def measure_distance(task: Task) -> tuple[list[Row], dict[str, Any]]:
        x, y = compare.aligned(*task.case.problem(task.random_seed))
        scores = compare.distances(x, y)
        return [task.row(*score, num_items=len(x)) for score in scores.items()], {}

    def text_case(name: str) -> Case:
        labelled = downstream.TASKS[name](trained.text, cache)
        about = {"dataset": name, "proxy": downstream.is_proxy(name, config.dataset)}
        return Case(f"accuracy-{name}", fields | about, lambda _: labelled)

    def measure_accuracy(task: Task) -> tuple[list[Row], dict[str, Any]]:
        labelled, seed = task.case.problem(task.random_seed), task.random_seed
        space = trained.spaces[seed][task.method]
        accuracy = downstream.evaluate(labelled, space, seed, config.inverse_penalty)
        return [task.row("accuracy", accuracy)], {}

    cases = [text_case(name) for name in config.tasks]
    pair_cases = [pair_case(*pair) for pair in itertools.combinations(config.embeddings, 2)]
    grid = tasks.grid(pair_cases, ["procrustes"], config.random_seeds)
    distances = tasks.run(grid, measure_distance, work, title="distances").rows
    grid = tasks.grid(cases, config.embeddings, config.random_seeds)
    accuracies = tasks.run(grid, measure_accuracy, work, title="accuracies").rows
    correlated = results.averaged(accuracies + correlations(accuracies, distances))
    distances = results.averaged(distances)
    rows = with_intervals(correlated, distances, config.bootstrap_resamples) + distances
    return records.finish(work, rows, report, quoted=shared.training_table(trained))


def correlations(accuracies: list[Row], distances: list[Row]) -> list[Row]:
    """Spearman correlation of distances and differences in accuracy, in each random run."""
    rows = []
    for (_, seed), run in frame(accuracies).groupby(["dataset", "random_seed"], sort=False):
        value = compare.correlation(_by_embedding(run.row), _by_pair(distances, random_seed=seed))
        about = {"method": "all pairs", "metric": "spearman", "mean": value}
        rows.append(dataclasses.replace(run.row.iloc[0], **about))
    return rows


def with_intervals(rows: list[Row], distances: list[Row], resamples: int) -> list[Row]:
    """The averaged rows; correlations have the ends of their interval, labels `low` and `high`."""
    labelled = []
    for row in rows:
        if row.metric == "spearman":
            accuracy = _by_embedding(select(rows, dataset=row.dataset, metric="accuracy"))
            low, high = compare.interval(accuracy, _by_pair(distances), resamples)
            row = dataclasses.replace(row, labels={"low": low, "high": high})
        labelled.append(row)
    return labelled


def _by_embedding(rows: Iterable[Row]) -> dict[str, float]:
    return {row.method: row.mean for row in rows}


def _by_pair(distances: list[Row], **wanted: Any) -> dict[tuple, float]:
    rows = select(distances, metric="l2", **wanted)
    return {(row.source, row.target): row.mean for row in rows}
