"""Table 1: distance, nearest neighbours and matching by transport of pairs of embeddings."""

import itertools
import re
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from common.errors import UserError
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from embed_match import compare
from embed_match.embeddings import in_common
from embed_match.experiments import random_runs
from embed_match.reports import match as report
from embed_match.reports import shared


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Measures each pair after rotation, and returns the tables."""
    pairs = [tuple(pair.split("-")) for pair in config.pairs]
    for pair in pairs:
        if len(set(pair)) != 2:
            raise UserError(f"'{'-'.join(pair)}' is not a pair: give two names, as in C1-C2.")
    for ranks in config.ranks:
        if not re.fullmatch(r"\d+-\d+", ranks):
            raise UserError(f"'{ranks}' are no ranks: give the first and the last, as in 1-5000.")
    transport = settings(compare.Transport, config)
    trained = random_runs(config, itertools.chain(*pairs), work, cache)

    def case(source: str, target: str, ranks: str) -> Case:
        fields = {"experiment": config.experiment, "dataset": config.dataset}
        fields |= {"proxy": config.dataset != "imdb", "source": source, "target": target}
        fields |= {"labels": {"ranks": ranks} if ranks else {}}
        name = "-".join(filter(None, ("match", source, target, ranks)))
        words = source, target, ranks
        return Case(name, fields, lambda seed: in_common(trained.spaces[seed], *words))

    def measure(task: Task) -> tuple[list[Row], dict[str, Any]]:
        x, y = compare.aligned(*task.case.problem(task.random_seed))
        scores = compare.scores(x, y, transport)
        return [task.row(*score, num_items=len(x)) for score in scores.items()], {}

    cases = [case(*pair, ranks) for pair in pairs for ranks in config.ranks or ("",)]
    measured = tasks.run(tasks.grid(cases, ["procrustes"], config.random_seeds), measure, work)
    rows = results.averaged(measured.rows)
    return records.finish(work, rows, report, quoted=shared.training_table(trained))
