"""Figure 6: pairs of embeddings put together in three ways, against their members."""

import itertools
from pathlib import Path

import numpy as np
from ml_collections import ConfigDict

from common import report
from common.workdir import Workdir, write_atomically, write_json
from embed_match import embeddings, figures, tables, tasks
from embed_match.correlation import check, row_of

WAYS = ("concatenate", "average", "logits")


def ensemble(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Accuracy of every pair's ensembles and members.

    Args:
      config: of configs/embed_match/ensemble.py.
      work: the run's folder.
      cache: the cache directory of data and trained embeddings.

    Returns:
      The table.

    Raises:
      UserError: values that do not fit, or data that can't be read.
    """
    check(config)
    text = embeddings.read(config, cache)
    spaces = embeddings.load(config, text, work, cache, config.embeddings)
    measured = []
    for task_name in config.tasks:
        task = tasks.TASKS[task_name](text, cache)
        x = {
            name: tasks.features(task, tasks.unit(space), space.known)
            for name, space in spaces.items()
        }
        for random_seed in config.random_seeds:

            def compute(task=task, x=x, random_seed=random_seed):
                return _measure(task, x, spaces, random_seed, config)

            found = work.part(f"{task_name}-seed{random_seed}", compute)
            shared = {"dataset": task_name, "random_seed": random_seed}
            measured += [row | shared for row in found]
    rows = [row_of(row, config) for row in report.summarise(measured)]
    table = tables.with_speeds(tables.ensemble(config, rows), config, spaces)
    write_json(work.path / "results.json", rows)
    write_atomically(work.path / "table.md", table.encode())
    for name in config.tasks:
        report.save_figure(figures.ensemble(rows, name), work.path / f"ensemble-{name}.png")
    return table


def _measure(
    task: tasks.Task, x: dict, spaces: dict, random_seed: int, config: ConfigDict
) -> list[dict]:
    """Accuracy of the members, and of each pair's ensembles with its gain over their mean."""
    train, test = tasks.draw(task, random_seed)

    def logits(features):
        return tasks.scores(features, task, train, test, config.inverse_penalty)

    alone = {name: logits(features) for name, features in x.items()}
    of_member = {name: tasks.accuracy(found, task, test) for name, found in alone.items()}
    rows = [
        {"source": name, "target": name, "method": "member", "metric": "accuracy", "value": value}
        for name, value in of_member.items()
    ]
    for a, b in itertools.combinations(x, 2):
        found = {
            "concatenate": logits(np.concatenate([x[a], x[b]], axis=1)),
            "average": logits(tasks.features(task, *tasks.average(spaces[a], spaces[b]))),
            "logits": (alone[a] + alone[b]) / 2,
        }
        for way in WAYS:
            value = tasks.accuracy(found[way], task, test)
            gain = value - (of_member[a] + of_member[b]) / 2
            pair = {"source": a, "target": b, "method": way}
            rows.append(pair | {"metric": "accuracy", "value": value})
            rows.append(pair | {"metric": "gain", "value": gain})
    return rows
