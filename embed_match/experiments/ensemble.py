"""Figure 6: accuracy of pairs of embeddings combined in three ways, and of their members."""

from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from common.errors import check_choice, check_count
from common.run import records, results, tasks
from common.run.results import Row
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from embed_match import downstream
from embed_match.experiments import random_runs
from embed_match.reports import ensemble as report
from embed_match.reports import shared


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Measures all ensembles, those of one random run in one task, and returns the tables."""
    check_count("The number of embeddings", len(set(config.embeddings)), least=2)
    for name in config.tasks:
        check_choice("task", name, downstream.TASKS)
    trained = random_runs(config, config.embeddings, work, cache)

    def case(name: str) -> Case:
        labelled = downstream.TASKS[name](trained.text, cache)
        fields = {"experiment": config.experiment, "dataset": name}
        fields |= {"proxy": downstream.is_proxy(name, config.dataset)}
        return Case(name, fields, lambda _: labelled)

    def measure(task: Task) -> tuple[list[Row], dict[str, Any]]:
        labelled, seed = task.case.problem(task.random_seed), task.random_seed
        scores = downstream.ensembles(labelled, trained.spaces[seed], seed, config.inverse_penalty)
        return [task.row(**score._asdict()) for score in scores], {}

    cases = [case(name) for name in config.tasks]
    measured = tasks.run(tasks.grid(cases, ["all"], config.random_seeds), measure, work)
    rows = results.averaged(measured.rows)
    return records.finish(work, rows, report, quoted=shared.training_table(trained))
