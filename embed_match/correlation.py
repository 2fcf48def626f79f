"""Figure 5: is a pair of similar embeddings also of similar use downstream?"""

import itertools
from pathlib import Path

import numpy as np
from jaxtyping import Float
from ml_collections import ConfigDict
from scipy.stats import spearmanr

from common import cli, report
from common.errors import UserError
from common.workdir import Workdir, write_atomically, write_json
from embed_match import compare, embeddings, figures, tables, tasks
from embed_match.embeddings import Embedding, Text


def correlate(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Distance after rotation against the difference of accuracy, of every pair of embeddings.

    Args:
      config: of configs/embed_match/correlate.py.
      work: the run's folder.
      cache: the cache directory of data and trained embeddings.

    Returns:
      The table.

    Raises:
      UserError: values that do not fit, or data that can't be read.
    """
    check(config)
    cli.positive(config, "resamples")
    if len(config.embeddings) < 4:
        raise UserError("Pairs of fewer than four embeddings say nothing: give more.")
    text = embeddings.read(config, cache)
    spaces = embeddings.load(config, text, work, cache, config.embeddings)
    distance = _distances(spaces, work)
    rows = report.summarise(_accuracies(config, text, spaces, work, cache))
    points = {name: _points(name, rows, distance, config) for name in config.tasks}
    for name in config.tasks:
        accuracies = {row["method"]: row["mean"] for row in rows if row["dataset"] == name}
        found = _correlation(accuracies, distance, config.resamples)
        rows.append({"dataset": name, "method": "all pairs", "metric": "spearman"} | found)
    for (a, b), value in distance.items():
        pair = {"dataset": config.dataset, "method": "procrustes", "source": a, "target": b}
        for metric in ("l2", "cosine"):
            found = {"mean": value[metric], "std": 0.0, "num_seeds": 1}
            rows.append(pair | {"metric": metric, "num_words": value["num_words"]} | found)
    rows = [row_of(row, config) for row in rows]
    table = tables.with_speeds(tables.correlate(config, rows), config, spaces)
    write_json(work.path / "results.json", rows)
    write_atomically(work.path / "table.md", table.encode())
    report.save_figure(figures.correlate(points, rows), work.path / "correlate.png")
    return table


def _distances(spaces: dict[str, Embedding], work: Workdir) -> dict[tuple[str, str], dict]:
    """Of every pair after rotation, on the words that both have."""
    found = {}
    for a, b in itertools.combinations(spaces, 2):

        def compute(a=a, b=b):
            x, y = compare.aligned(*embeddings.shared(spaces[a], spaces[b]))
            return compare.distances(x, y) | {"num_words": len(x)}

        found[a, b] = work.part(f"distance-{a}-{b}", compute)
    return found


def _accuracies(
    config: ConfigDict, text: Text, spaces: dict[str, Embedding], work: Workdir, cache: Path
) -> list[dict]:
    """Of every embedding and random seed in every task."""
    measured = []
    for task_name in config.tasks:
        task = tasks.TASKS[task_name](text, cache)
        for name, space in spaces.items():
            x = tasks.features(task, tasks.unit(space), space.known)

            def compute(task=task, x=x):
                found = []
                for random_seed in config.random_seeds:
                    train, test = tasks.draw(task, random_seed)
                    logits = tasks.scores(x, task, train, test, config.inverse_penalty)
                    found.append(tasks.accuracy(logits, task, test))
                return found

            values = work.part(f"{task_name}-{name}", compute)
            shared = {"dataset": task_name, "method": name, "metric": "accuracy"}
            for random_seed, value in zip(config.random_seeds, values, strict=True):
                measured.append(shared | {"value": value, "random_seed": random_seed})
    return measured


def check(config: ConfigDict) -> None:
    """Wrong names and values of the downstream experiments are said at the start.

    Raises:
      UserError: an unknown name, or values that do not fit.
    """
    embeddings.check(config, config.embeddings)
    for name in config.tasks:
        cli.choose(tasks.TASKS, name, "task")
    cli.positive(config, "inverse_penalty")


def _points(task: str, rows: list[dict], distance: dict, config: ConfigDict) -> list[dict]:
    """Each pair's distance, difference of mean accuracy, and number of pretrained members."""
    accuracy = {row["method"]: row["mean"] for row in rows if row["dataset"] == task}
    return [
        {
            "pair": f"{a}-{b}",
            "l2": value["l2"],
            "difference": abs(accuracy[a] - accuracy[b]),
            "pretrained": sum(name not in config.models for name in (a, b)),
        }
        for (a, b), value in distance.items()
    ]


def _correlation(accuracy: dict[str, float], distance: dict, resamples: int) -> dict:
    """Spearman's correlation over all pairs, with an interval from resampled embeddings.

    Pairs share embeddings, so these are drawn with replacement, not pairs; two draws of one
    embedding are no pair.
    """
    names = list(accuracy)
    n = len(names)
    apart = np.zeros((n, n))
    for (a, b), value in distance.items():
        i, j = names.index(a), names.index(b)
        apart[i, j] = apart[j, i] = value["l2"]
    values = np.array(list(accuracy.values()))
    difference = np.abs(values[:, None] - values)
    rng = np.random.default_rng(0)
    drawn = [_of_pairs(apart, difference, rng.integers(n, size=n)) for _ in range(resamples)]
    drawn = np.array([value for value in drawn if np.isfinite(value)])
    low, high = np.quantile(drawn, [0.025, 0.975])
    mean = _of_pairs(apart, difference, np.arange(n))
    std = float(drawn.std())
    return {"mean": mean, "std": std, "low": float(low), "high": float(high), "num_seeds": 1}


def _of_pairs(
    apart: Float[np.ndarray, "n n"], difference: Float[np.ndarray, "n n"], chosen: np.ndarray
) -> float:
    i, j = np.triu_indices(len(chosen), 1)
    i, j = chosen[i], chosen[j]
    i, j = i[i != j], j[i != j]
    if len(set(apart[i, j])) < 3 or len(set(difference[i, j])) < 3:
        return float("nan")
    return float(spearmanr(apart[i, j], difference[i, j])[0])


def row_of(row: dict, config: ConfigDict) -> dict:
    """A summarised row in the form of results.json."""
    standin = config.dataset != "imdb" or row["dataset"] == "news"
    empty = dict.fromkeys(("method", "source", "target"))
    named = {"experiment": config.experiment, "paper_value": None, "standin": standin}
    return empty | row | named
