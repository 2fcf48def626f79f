"""Figure 5: distance after rotation against the difference in accuracy, for all pairs."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from common.errors import check_choice, check_count
from common.run import records, results, tasks
from common.run.results import Row, select
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from embed_match import compare, downstream, embeddings
from embed_match.reports import correlate as report
from embed_match.reports import texts


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Measures the distance of each pair and the accuracy of each embedding, and correlates."""
    # Three embeddings have three pairs, and fewer no correlation.
    check_count("The number of embeddings", len(set(config.embeddings)), least=3)
    for name in config.tasks:
        check_choice("task", name, downstream.TASKS)
    values = settings(embeddings.Values, config)
    trained = embeddings.random_runs(values, config.embeddings, work, cache)
    fields = {"experiment": config.experiment}

    def pair_case(source: str, target: str) -> Case:
        about = {"dataset": values.dataset, "proxy": values.dataset != "imdb"}
        about |= {"source": source, "target": target}
        name = f"distance-{source}-{target}"
        return Case(name, fields | about, lambda seed: trained.in_common(seed, source, target))

    def measure_distance(task: Task) -> tuple[list[Row], dict[str, Any]]:
        x, y = compare.aligned(*task.case.problem(task.random_seed))
        scores = compare.distances(x, y)._asdict()
        return [task.row(*score, num_items=len(x)) for score in scores.items()], {}

    def text_case(name: str) -> Case:
        labelled = downstream.load(name, trained.text, cache)
        about = {"dataset": name, "proxy": downstream.is_proxy(name, values.dataset)}
        return Case(f"accuracy-{name}", fields | about, lambda _: labelled)

    def measure_accuracy(task: Task) -> tuple[list[Row], dict[str, Any]]:
        labelled, seed = task.case.problem(task.random_seed), task.random_seed
        space = trained.spaces[seed][task.method]
        accuracy = downstream.evaluate(labelled, space, seed, config.inverse_penalty)
        return [task.row("accuracy", accuracy)], {}

    cases = [text_case(name) for name in config.tasks]
    pair_cases = [pair_case(*pair) for pair in itertools.combinations(config.embeddings, 2)]
    grid = tasks.grid(pair_cases, ["procrustes"], values.random_seeds)
    distances = tasks.run(grid, measure_distance, work, title="distances").rows
    grid = tasks.grid(cases, config.embeddings, values.random_seeds)
    accuracies = tasks.run(grid, measure_accuracy, work, title="accuracies").rows
    correlated = results.averaged(accuracies + correlations(accuracies, distances))
    distances = results.averaged(distances)
    rows = with_intervals(correlated, distances, config.bootstrap_resamples) + distances
    text = texts.trained_on(values.dataset, values.num_texts, values.num_words)
    tables = report.tables(rows, text) | texts.training_table(trained)
    figures = report.figures(rows, list(trained.models))
    return records.finish(work, rows, results.joined(tables), figures)


def correlations(accuracies: list[Row], distances: list[Row]) -> list[Row]:
    """Spearman correlation of distances and differences in accuracy, in each random run.

    Args:
      accuracies: each of one embedding in one random run, on one or more sets of texts.
      distances: of pairs of these embeddings, each in one random run.
    """
    random_runs = dict.fromkeys((row.dataset, row.random_seed) for row in accuracies)
    rows = []
    for dataset, seed in random_runs:
        of_run = select(accuracies, dataset=dataset, random_seed=seed)
        l2 = _by_pair(select(distances, random_seed=seed))
        value = compare.correlation(_by_embedding(of_run), l2)
        rows.append(
            dataclasses.replace(of_run[0], method="all pairs", metric="spearman", mean=value)
        )
    return rows


def with_intervals(rows: list[Row], distances: list[Row], resamples: int) -> list[Row]:
    """The rows; correlations have both ends of their interval as labels `low` and `high`.

    Args:
      rows: accuracies and correlations, averaged over the random runs.
      distances: likewise, of all pairs.
      resamples: number of bootstrap samples.
    """
    labelled = []
    for row in rows:
        if row.metric == "spearman":
            accuracy = _by_embedding(select(rows, dataset=row.dataset, metric="accuracy"))
            low, high = compare.interval(accuracy, _by_pair(distances), resamples)
            row = dataclasses.replace(row, labels={"low": low, "high": high})
        labelled.append(row)
    return labelled


def _by_embedding(rows: list[Row]) -> dict[str, float]:
    return {row.method: row.mean for row in rows}


def _by_pair(rows: list[Row]) -> dict[tuple[str, str], float]:
    return {(row.source, row.target): row.mean for row in select(rows, metric="l2")}
