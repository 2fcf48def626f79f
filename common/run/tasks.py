"""An experiment as a list of cases, and the resumable tasks that measure them.

A case is a problem that is drawn anew for each random seed; a task is one random run of one method
on one case. The result of a finished task is kept in the run's folder, so that a killed run goes on
with the next one. A task builds the rows of what it measures (`Task.row`); tables and figures are
made of the rows of all tasks.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, SupportsFloat

from common.errors import check_count
from common.progress import progress_bar
from common.run import results, train
from common.run.results import Row
from common.run.workdir import Workdir

ALL_SEEDS = None  # in the place of a random seed: one program makes all random runs at once


class Case(NamedTuple):
    """One line of an experiment: its name, the fields of its rows (`Row`), and its problem.

    `problem`: random seed, or `ALL_SEEDS` if all runs are one task -> the problem of the methods.
    """

    name: str
    fields: Mapping[str, Any]
    problem: Callable[[Any], Any]


class Task(NamedTuple):
    """One random run of one method on one case; all of them if `random_seed` is `ALL_SEEDS`."""

    case: Case
    method: str
    random_seed: int | None

    @property
    def seed(self) -> int:
        """The random seed of a task that is one random run."""
        if self.random_seed is None:
            raise ValueError(f"{self.name} is all random runs, which have no common random seed")
        return self.random_seed

    @property
    def name(self) -> str:
        """Of the task's result, logs and checkpoints in the run's folder."""
        seed = "" if self.random_seed is ALL_SEEDS else f"-seed{self.random_seed}"
        return f"{self.case.name}-{self.method}{seed}".replace(" ", "_")

    def row(
        self,
        metric: str,
        value: SupportsFloat,
        *,
        labels: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Row:
        """A value with the fields of its case and its own; of `ALL_SEEDS`, give `random_seed`."""
        common = {**self.case.fields, "method": self.method, "random_seed": self.random_seed}
        labels = {**common.get("labels", {}), **(labels or {})}
        return Row(**common | fields | {"metric": metric, "mean": float(value), "labels": labels})


class Measured(NamedTuple):
    """Rows of random runs, and by task what its method says of itself, `failed` for instance."""

    rows: list[Row]
    notes: dict[str, dict[str, Any]]

    @property
    def failed(self) -> list[str]:
        """Names of the tasks whose method reports that it has failed."""
        return [name for name, notes in self.notes.items() if notes.get("failed")]


def grid(
    cases: Iterable[Case], methods: Iterable[str], random_seeds: Iterable[int | None]
) -> list[Task]:
    """The tasks of all cases: each random seed, and for each all methods; a UserError if none.

    What is named twice is measured once: it would count twice in means and deviations.
    """
    cases = list({case.name: case for case in cases}.values())
    methods, random_seeds = list(dict.fromkeys(methods)), list(dict.fromkeys(random_seeds))
    check_count("The number of cases", len(cases))
    check_count("The number of methods", len(methods))
    check_count("The number of random seeds", len(random_seeds))
    for seed in random_seeds:
        check_count("A random seed", seed or 0, least=0)  # `ALL_SEEDS` is None
    return [
        Task(case, method, random_seed)
        for case, random_seed, method in itertools.product(cases, random_seeds, methods)
    ]


def run(
    tasks: Iterable[Task],
    measure: Callable[[Task], tuple[list[Row], dict[str, Any]]],
    work: Workdir,
    *,
    title: str = "",
    arrays: Callable[[Task], str] | None = None,
) -> Measured:
    """Measures tasks in their order, or reads what a run before has measured of them.

    `measure` returns rows and notes, JSON-serialisable; `arrays` names an .npz that it writes.
    """
    rows: list[Row] = []
    notes: dict[str, dict[str, Any]] = {}
    bar = progress_bar(list(tasks), desc=title, unit="task")
    for task in bar:
        bar.set_postfix_str(task.name)

        def compute(task: Task = task) -> dict[str, Any]:
            measured, said = measure(task)
            return {"rows": [results.fields(row) for row in measured], "notes": said}

        kept = work.part(task.name, compute, arrays and arrays(task))
        train.forget_checkpoints(work, task.name)
        rows += (results.from_fields(row | {"quick": work.quick}) for row in kept["rows"])
        notes[task.name] = kept["notes"]
    return Measured(rows, notes)
