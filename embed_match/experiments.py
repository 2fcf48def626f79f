"""The experiments: data, embeddings, metrics, report."""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from common.encoders import texts as text_encoders
from common.errors import UserError
from common.run.results import Row, finish, joined, select, summarise
from common.run.settings import settings
from common.run.workdir import Workdir
from embed_match import compare, embeddings, report, tasks
from embed_match.embeddings import Embedding, Model, Text

Trainings = dict[int, dict[str, Embedding]]  # random seed -> embeddings by name
Measured = dict[tuple[int, str, str, str], dict[str, float]]  # of a pair, in a run, on some ranks
SEED_STEP = 10  # between the random seeds of a model in two random runs


def match(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Table 1: distance, nearest neighbours and matching by transport of pairs of embeddings."""
    pairs = [tuple(pair.split("-")) for pair in config.pairs]
    for pair in pairs:
        if len(set(pair)) != 2:
            raise UserError(f"'{'-'.join(pair)}' is not a pair: give two names, as in C1-C2.")
    models, _, trainings = _embeddings(config, itertools.chain(*pairs), work, cache)
    transport = {name: config[name] for name in ("epsilon", "max_iterations", "tolerance")}

    def measure(x, y):
        return _compare(x, y, transport)

    # The poster's numbers are comparable on its own text and vocabulary only.
    comparable = (config.dataset, config.num_texts, config.num_words) == ("imdb", 25_000, 5_000)
    found = _measure_pairs("match", pairs, trainings, work, measure, config.ranks or ("",))
    rows = _pair_rows(config, found, comparable and not config.ranks)
    kinds = {name: model.kind for name, model in models.items()}
    figures = {"match": report.match_figure(rows), "curve": report.curve_figure(rows, kinds)}
    return _finish(config, work, rows, models, trainings, figures)


def correlate(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Figure 5: distance after rotation against the difference in accuracy, for all pairs."""
    models, text, trainings = _embeddings(config, config.embeddings, work, cache)
    pairs = list(itertools.combinations(config.embeddings, 2))
    distances = _measure_pairs("distance", pairs, trainings, work, compare.distances)
    of_pairs = _pair_rows(config, distances)
    l2 = {(row.source, row.target): row.mean for row in select(of_pairs, metric="l2")}
    rows = []
    for name in config.tasks:
        shared = _shared(config, name)
        task, measured = _task(name, text, cache), []
        for random_seed, spaces in trainings.items():
            accuracy = {}
            for method, space in spaces.items():
                arguments = task, space, random_seed, config.inverse_penalty
                part = f"{name}-{method}-seed{random_seed}"
                accuracy[method] = work.part(part, partial(tasks.evaluate, *arguments))
                found = {"method": method, "metric": "accuracy", "value": accuracy[method]}
                measured.append(found | {"random_seed": random_seed})
            of_run = {pair: distances[random_seed, *pair, ""]["l2"] for pair in pairs}
            found = {"method": "all pairs", "metric": "spearman"}
            found["value"] = compare.correlation(accuracy, of_run)
            measured.append(found | {"random_seed": random_seed})
        summary = summarise(measured, **shared)
        accuracy = {row.method: row.mean for row in select(summary, metric="accuracy")}
        low, high = compare.interval(accuracy, l2, config.bootstrap_resamples)
        for row in summary:
            interval = {"low": low, "high": high} if row.metric == "spearman" else {}
            rows.append(dataclasses.replace(row, labels=interval))
    rows += of_pairs
    figure = report.correlate_figure(rows, list(models))
    return _finish(config, work, rows, models, trainings, {"correlate": figure})


def ensemble(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Figure 6: accuracy of pairs of embeddings combined in three ways, and of their members."""
    models, text, trainings = _embeddings(config, config.embeddings, work, cache)
    rows = []
    for name in config.tasks:
        task, measured = _task(name, text, cache), []
        for random_seed, spaces in trainings.items():
            arguments = task, spaces, random_seed, config.inverse_penalty
            found = work.part(f"{name}-seed{random_seed}", partial(tasks.ensembles, *arguments))
            measured += [row | {"random_seed": random_seed} for row in found]
        rows += summarise(measured, **_shared(config, name))
    figures = {f"ensemble-{name}": report.ensemble_figure(rows, name) for name in config.tasks}
    return _finish(config, work, rows, models, trainings, figures)


def sentences(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Table 1 and Figure 6 for sentence encoders: each text has one vector of each encoder."""
    transport = {name: config[name] for name in ("epsilon", "max_iterations", "tolerance")}
    rows = []
    for name in config.datasets:
        texts, task = tasks.sentences(name, config.num_texts, cache)
        known, spaces = np.ones(len(texts), bool), {}
        for encoder in config.encoders:
            vectors = text_encoders.encode(encoder, texts, cache, max_pieces=config.max_pieces)
            spaces[encoder] = Embedding(vectors, known, np.nan)

        def measure(random_seed, task=task, spaces=spaces):
            train, test = tasks.split(task, random_seed)
            measured = tasks.ensembles(task, spaces, random_seed, config.inverse_penalty, True)
            for source, target in itertools.combinations(spaces, 2):
                x, y = compare.aligned(spaces[source].vectors, spaces[target].vectors, train)
                found = _compare(x[test], y[test], transport)
                pair = {"source": source, "target": target, "method": "procrustes"}
                measured += [pair | {"metric": key, "value": found[key]} for key in found]
            return [one | {"num_items": len(test)} for one in measured]

        measured = []
        for random_seed in config.random_seeds:
            found = work.part(f"{name}-seed{random_seed}", partial(measure, random_seed))
            measured += [one | {"random_seed": random_seed} for one in found]
        shared = {"experiment": config.experiment, "dataset": name, "proxy": name != "imdb"}
        rows += summarise(measured, **shared)
    return finish(work, rows, joined(tables(config, rows)))


EXPERIMENTS = {
    "match": match,
    "correlate": correlate,
    "ensemble": ensemble,
    "sentences": sentences,
}


def tables(config: ConfigDict, rows: list[Row]) -> dict[str, str]:
    """The tables of an experiment by title."""
    if config.experiment == "sentences":
        return report.sentences(rows)
    text = report.trained_on(config.dataset, config.num_texts, config.num_words)
    if config.experiment == "match":
        return report.match(rows, text, config.max_iterations, config.tolerance)
    write = report.correlate if config.experiment == "correlate" else report.ensemble
    return write(rows, text)


def models(config: ConfigDict, random_seed: int = 0) -> dict[str, Model]:
    """The models of the config; a value of the model itself overrides that of its kind.

    Args:
      config: with `models` and the values of each kind.
      random_seed: of the random run, in each of which every model is trained anew.

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
        seed = own.random_seed + SEED_STEP * random_seed
        found[name] = settings(Model, own, settings=of_kind, random_seed=seed)
    return found


def _embeddings(
    config: ConfigDict, names: Iterable[str], work: Workdir, cache: Path
) -> tuple[dict[str, Model], Text, Trainings]:
    """The models of the config, their text, and the embeddings of the names in each random run."""
    names, known = list(dict.fromkeys(names)), models(config)
    text = embeddings.read(config.dataset, config.num_texts, config.num_words, known, cache)
    trained = [name for name in names if name in known]
    pretrained = [name for name in names if name not in known]
    fixed = embeddings.load(pretrained, known, text, work, cache)
    trainings = {}
    for random_seed in config.random_seeds:
        found = embeddings.load(trained, models(config, random_seed), text, work, cache)
        trainings[random_seed] = {name: (fixed | found)[name] for name in names}
    return known, text, trainings


def _compare(x, y, transport: dict[str, Any]) -> dict[str, float]:
    """All measurements of Table 1, and entropic transport."""
    found = compare.distances(x, y) | compare.neighbours(x, y)
    return found | compare.matching(x, y, **transport)


def _measure_pairs(
    part: str, pairs, trainings: Trainings, work: Workdir, measure, ranks: Sequence[str] = ("",)
) -> Measured:
    """Measures each pair after rotation in each random run, on the words that both have.

    Of them, those with the given ranks in the order of frequency; all words for the rank "".
    """
    found = {}
    cases = itertools.product(trainings.items(), pairs, ranks)
    for (random_seed, spaces), (source, target), rank in cases:

        def compute(x=spaces[source], y=spaces[target], rank=rank):
            first, last = map(int, rank.split("-")) if rank else (1, len(x.known))
            position = np.arange(1, len(x.known) + 1)
            rows = x.known & y.known & (first <= position) & (position <= last)
            found = measure(*compare.aligned(x.vectors[rows], y.vectors[rows]))
            return found | {"num_items": int(rows.sum())}

        name = f"{part}-{source}-{target}{rank and '-' + rank}-seed{random_seed}"
        found[random_seed, source, target, rank] = work.part(name, compute)
    return found


def _pair_rows(config: ConfigDict, found: Measured, comparable: bool = False) -> list[Row]:
    """Rows of results.json, with the poster's numbers if they are comparable."""
    measured = []
    for (random_seed, source, target, rank), values in found.items():
        pair = {"source": source, "target": target, "num_items": values["num_items"]}
        pair["labels"] = {"ranks": rank} if rank else {}
        for metric, value in values.items():
            if metric != "num_items":
                published = report.paper_value(source, target, metric) if comparable else None
                about = {"metric": metric, "paper_value": published, "random_seed": random_seed}
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


def _finish(config, work, rows, models, trainings, figures) -> str:
    """Writes the results of a run, with the throughput of the first training of each model."""
    speeds = report.speeds(next(iter(trainings.values())), models)
    text = joined(tables(config, rows) | {"Training": speeds})
    return finish(work, rows, text, figures)
