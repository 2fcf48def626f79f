"""Figure 6: accuracy of pairs of embeddings combined in three ways, and of their members."""

from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from common.errors import check_choice, check_count
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from embed_match import downstream, embeddings
from embed_match.reports import ensemble as report
from embed_match.reports import texts


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Measures all ensembles, those of one random run in one task, and returns the tables."""
    check_count("The number of embeddings", len(set(config.embeddings)), least=2)
    for name in config.tasks:
        check_choice("task", name, downstream.TASKS)
    values = settings(embeddings.Values, config)
    trained = embeddings.random_runs(values, config.embeddings, work, cache)

    def case(name: str) -> Case:
        labelled = downstream.load(name, trained.text, cache)
        fields = {"experiment": config.experiment, "dataset": name}
        fields |= {"proxy": downstream.is_proxy(name, values.dataset)}
        return Case(name, fields, lambda _: labelled)

    def measure(task: Task) -> tuple[list[Row], dict[str, Any]]:
        labelled, seed = task.case.problem(task.random_seed), task.random_seed
        scores = downstream.ensembles(labelled, trained.spaces[seed], seed, config.inverse_penalty)
        return [task.row(**score._asdict()) for score in scores], {}

    cases = [case(name) for name in config.tasks]
    measured = tasks.run(tasks.grid(cases, ["all"], values.random_seeds), measure, work)
    rows = results.averaged(measured.rows)
    text = texts.trained_on(values.dataset, values.num_texts, values.num_words)
    tables = report.tables(rows, text) | texts.training_table(trained)
    return records.finish(work, rows, results.joined(tables), report.figures(rows))
