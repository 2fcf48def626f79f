"""The experiments: data, embeddings, metrics, report."""

import itertools
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from common.errors import UserError
from common.report import Row, finish, summarise
from common.settings import settings
from common.workdir import Workdir
from embed_match import compare, embeddings, report, tasks
from embed_match.embeddings import Embedding, Model, Text

Pairs = dict[tuple[str, str], dict[str, float]]  # measurements of pairs of embeddings


def match(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Table 1: distance, nearest neighbours and matching by transport of pairs of embeddings."""
    pairs = [tuple(pair.split("-")) for pair in config.pairs]
    for pair in pairs:
        if len(set(pair)) != 2:
            raise UserError(f"'{'-'.join(pair)}' is not a pair: give two names, as in C1-C2.")
    models, _, spaces = _embeddings(config, itertools.chain(*pairs), work, cache)
    transport = {name: config[name] for name in ("epsilon", "max_iterations", "tolerance")}

    def measure(x, y):
        found = compare.distances(x, y) | compare.neighbours(x, y)
        return found | compare.matching(x, y, **transport)

    # The poster's numbers are comparable on its own text and vocabulary only.
    comparable = (config.dataset, config.num_texts, config.num_words) == ("imdb", 25_000, 5_000)
    rows = _pair_rows(config, _measure_pairs("match", pairs, spaces, work, measure), comparable)
    return _finish(config, work, rows, models, spaces, {"match": report.match_figure(rows)})


def correlate(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Figure 5: distance after rotation against the difference in accuracy, for all pairs."""
    models, text, spaces = _embeddings(config, config.embeddings, work, cache)
    pairs = itertools.combinations(spaces, 2)
    distances = _measure_pairs("distance", pairs, spaces, work, compare.distances)
    l2 = {pair: found["l2"] for pair, found in distances.items()}
    rows = []
    for name in config.tasks:
        shared = _shared(config, name)
        task, measured = _task(name, text, cache), []
        for method, space in spaces.items():
            arguments = task, space, config.random_seeds, config.inverse_penalty
            values = work.part(f"{name}-{method}", partial(tasks.evaluate, *arguments))
            for random_seed, value in zip(config.random_seeds, values, strict=True):
                measured.append({"method": method, "random_seed": random_seed, "value": value})
        accuracies = summarise(measured, metric="accuracy", **shared)
        accuracy = {row.method: row.mean for row in accuracies}
        mean, std, low, high = compare.correlation(accuracy, l2, config.bootstrap_resamples)
        found = {"mean": mean, "std": std, "num_runs": 1, "labels": {"low": low, "high": high}}
        rows += [*accuracies, Row(method="all pairs", metric="spearman", **found, **shared)]
    rows += _pair_rows(config, distances)
    figure = report.correlate_figure(rows, list(models))
    return _finish(config, work, rows, models, spaces, {"correlate": figure})


def ensemble(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Figure 6: accuracy of pairs of embeddings combined in three ways, and of their members."""
    models, text, spaces = _embeddings(config, config.embeddings, work, cache)
    rows = []
    for name in config.tasks:
        task, measured = _task(name, text, cache), []
        for random_seed in config.random_seeds:
            arguments = task, spaces, random_seed, config.inverse_penalty
            found = work.part(f"{name}-seed{random_seed}", partial(tasks.ensembles, *arguments))
            measured += [row | {"random_seed": random_seed} for row in found]
        rows += summarise(measured, **_shared(config, name))
    figures = {f"ensemble-{name}": report.ensemble_figure(rows, name) for name in config.tasks}
    return _finish(config, work, rows, models, spaces, figures)


EXPERIMENTS = {"match": match, "correlate": correlate, "ensemble": ensemble}


def tables(config: ConfigDict, rows: list[Row]) -> dict[str, str]:
    """The tables of an experiment by title."""
    text = report.trained_on(config.dataset, config.num_texts, config.num_words)
    if config.experiment == "match":
        return report.match(rows, text, config.max_iterations, config.tolerance)
    write = report.correlate if config.experiment == "correlate" else report.ensemble
    return write(rows, text, len(config.random_seeds))


def models(config: ConfigDict) -> dict[str, Model]:
    """The models of the config; a value of the model itself overrides that of its kind.

    Raises:
      UserError: an unknown kind.
    """
    found = {}
    for name, own in config.models.items():
        if own.kind not in embeddings.KINDS:
            choices = ", ".join(embeddings.KINDS)
            raise UserError(f"{name} has the unknown kind '{own.kind}': choose from {choices}.")
        values = ConfigDict(config[own.kind].to_dict() | own.to_dict())
        of_kind = settings(embeddings.KINDS[own.kind][0], values)
        found[name] = settings(Model, own, settings=of_kind)
    return found


def _embeddings(
    config: ConfigDict, names: Iterable[str], work: Workdir, cache: Path
) -> tuple[dict[str, Model], Text, dict[str, Embedding]]:
    """The models of the config, their training text, and the embeddings of the given names."""
    known = models(config)
    text = embeddings.read(config.dataset, config.num_texts, config.num_words, known, cache)
    return known, text, embeddings.load(names, known, text, work, cache)


def _measure_pairs(part: str, pairs, spaces, work: Workdir, measure: Callable) -> Pairs:
    """Measures the vectors of each pair after rotation, on the words that both embeddings have."""
    found = {}
    for source, target in pairs:

        def compute(x=spaces[source], y=spaces[target]):
            both = x.known & y.known
            found = measure(*compare.aligned(x.vectors[both], y.vectors[both]))
            return found | {"num_items": int(both.sum())}

        found[source, target] = work.part(f"{part}-{source}-{target}", compute)
    return found


def _pair_rows(config: ConfigDict, found: Pairs, comparable: bool = False) -> list[Row]:
    """Rows of results.json, with the poster's numbers if they are comparable."""
    measured = []
    for (source, target), values in found.items():
        pair = {"source": source, "target": target, "num_items": values.pop("num_items")}
        for metric, value in values.items():
            published = report.paper_value(source, target, metric) if comparable else None
            about = {"metric": metric, "paper_value": published, "random_seed": 0}
            measured.append(pair | about | {"value": value})
    return summarise(measured, method="procrustes", **_shared(config, config.dataset))


def _shared(config: ConfigDict, dataset: str) -> dict[str, Any]:
    """Fields that rows of one dataset share; the poster does not name its news headlines."""
    proxy = config.dataset != "imdb" or dataset == "news"
    return {"experiment": config.experiment, "dataset": dataset, "proxy": proxy}


def _task(name: str, text: Text, cache: Path) -> tasks.Task:
    if name not in tasks.TASKS:
        raise UserError(f"There is no task '{name}': choose from {', '.join(tasks.TASKS)}.")
    return tasks.TASKS[name](text, cache)


def _finish(config, work, rows, models, spaces, figures) -> str:
    """Writes the results of a run, with the training throughput below the tables of `tables`."""
    found = tables(config, rows) | {"Training": report.speeds(spaces, models)}
    text = "\n\n".join(f"## {title}\n\n{table}" for title, table in found.items())
    return finish(work, rows, text, figures)
