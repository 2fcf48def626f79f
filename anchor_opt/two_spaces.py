"""Retrieval across two spaces of the same items: of words, and of images by two encoders."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from anchor_opt import evaluation, runner
from anchor_opt.methods import algorithm1
from anchor_opt.problem import Problem, Result, sample
from anchor_opt.reports.retrieval import Drawn, Published
from anchor_opt.runner import ROLES, Grid, other
from common.linear import preprocess
from common.metrics import correspondence
from common.run.results import Row
from common.run.tasks import Case, Measured, Task
from common.run.workdir import Workdir
from common.spaces import space_pairs
from common.spaces.paired_spaces import PairedSpaces


class Pair(NamedTuple):
    """Two spaces whose row i is the same item, by the names under which their rows are reported.

    Attributes:
      names: of source and target.
      items: names of the items.
      source: preprocessed rows.
      target: preprocessed rows.
      ranks: of the items by frequency in source and target; None without frequencies.
    """

    names: tuple[str, str]
    items: Sequence[str]
    source: Float[Array, "n d_source"]
    target: Float[Array, "n d_target"]
    ranks: tuple[Any, Any] | None

    @classmethod
    def of(
        cls, names: tuple[str, str], data: PairedSpaces, normalise: Callable = preprocess
    ) -> "Pair":
        """A pair of raw spaces, normalised: centred and of unit norm if nothing else is asked."""
        source, target = (normalise(jax.device_put(x)) for x in (data.source, data.target))
        return cls(names, data.names, source, target, data.ranks)

    def spaces(self) -> dict[str, Float[Array, "n d"]]:
        """Role -> rows."""
        return {"source": self.source, "target": self.target}

    def name(self, role: str) -> str:
        """Name of the space in a role."""
        return self.names[ROLES.index(role)]


class Score(NamedTuple):
    """A metric of retrieval from one space, by its role, to another or to itself."""

    source: str
    target: str
    metric: str
    value: float


def retrieve(
    pair: Pair,
    grid: Grid,
    paper: Published,
    work: Workdir,
    fields: dict[str, Any],
    prefix: str = "",
) -> Measured:
    """Every method on a pair of spaces, in each direction of the grid.

    Args:
      pair: the spaces.
      grid: `grid.optimise` has the roles of the spaces whose anchors are sought.
      paper: its numbers stand beside ours.
      work: the run's folder.
      fields: of all rows.
      prefix: of the names of tasks.
    """
    absolute = [
        Score(*score)
        for score in work.part(f"{prefix}absolute", lambda: _scores(pair.spaces(), grid.settings.k))
    ]
    cases = [_case(pair, role, grid, fields, prefix) for role in grid.optimise]
    measure = partial(evaluate, pair=pair, absolute=absolute, grid=grid, paper=paper, work=work)
    title = f"anchor optimisation {prefix.rstrip('-')}".rstrip()
    return runner.run(cases, grid, measure, work, title=title)


def problem(pair: Pair, grid: Grid, sought: str, random_seed: int) -> Problem:
    """Draws anchors and known pairs, and hides the order of the space in the role `sought`."""
    spaces, ranks = pair.spaces(), pair.ranks
    return sample(
        spaces[other(sought)],
        spaces[sought],
        num_anchors=grid.num_anchors,
        num_pairs=grid.num_pairs,
        random_seed=random_seed,
        wrong_pair_fraction=grid.wrong_pair_fraction,
        ranks=ranks and (ranks if sought == "target" else ranks[::-1]),
    )._replace(sought=sought)


def _case(pair: Pair, sought: str, grid: Grid, fields: dict[str, Any], prefix: str) -> Case:
    """The direction in which the anchors of the space in the role `sought` are sought."""
    own = {
        "dataset": " -> ".join(pair.names),
        "num_items": len(pair.items),
        "num_pairs": grid.num_pairs,
        "labels": {"optimised": pair.name(sought)},
    }
    draw = partial(problem, pair, grid, sought)
    return Case(f"{prefix}{sought}", {**fields, **own}, draw)


def drawn(pair: Pair, grid: Grid, prefix: str = "") -> Drawn:
    """What the figures show: the first direction of the grid."""
    sought = grid.optimise[0]
    # Of the case only the name is used.
    case = Case(f"{prefix}{sought}", {}, partial(problem, pair, grid, sought))
    tasks = {
        method: [Task(case, method, random_seed).name for random_seed in grid.random_seeds]
        for method in grid.methods
    }
    return Drawn(pair.names, pair.name(sought), pair.source, pair.target, tasks)


def evaluate(
    task: Task,
    problem: Problem,
    result: Result,
    *,
    pair: Pair,
    absolute: Sequence[Score],
    grid: Grid,
    paper: Published,
    work: Workdir,
) -> list[Row]:
    """All metrics by relative vectors, P@1 by the method's own maps, and the absolute vectors'.

    The metrics of the absolute vectors stand beside every method's, as in the paper.
    """
    k, sought, given = grid.settings.k, problem.sought, other(problem.sought)

    def row(score: Score, representation: str, **more: Any) -> Row:
        return task.row(
            score.metric,
            score.value,
            source=pair.name(score.source),
            target=pair.name(score.target),
            dim=pair.spaces()[score.source].shape[1],
            labels={"representation": representation},
            **more,
        )

    rows = []
    for form, anchors in runner.keep_anchors(task, problem, result, work, pair.items).items():
        vectors = dict(zip((given, sought), problem.relative(anchors), strict=True))
        for score in _scores({role: vectors[role] for role in ROLES}, k):
            published = paper.fields(task.method, sought, score.source, score.target, score.metric)
            rows.append(row(score, "relative", anchors=form, **published))
    if result.maps is not None:
        precision = evaluation.precision_of_maps(problem, result, k)
        reached = {given: precision.to_target, sought: precision.to_source}
        for role in ROLES:
            rows.append(row(Score(role, other(role), "p_at_1", reached[role]), "mapped"))
        if "failed" in result.notes:
            names: dict[str, Any] = {"source": pair.name(given), "target": pair.name(sought)}
            names["dim"] = problem.source.shape[1]
            rows += evaluation.search_rows(
                task, problem, result.notes, precision.to_target, k, **names
            )
    return rows + [row(score, "absolute") for score in absolute]


def mrr(
    pair: Pair,
    grid: Grid,
    work: Workdir,
    fields: dict[str, Any],
    name: str,
    detail: bool = False,
) -> Measured:
    """MRR from source to target of every method, the anchors of the target being sought.

    Args:
      pair: the spaces.
      grid: methods with their settings, and random seeds.
      work: the run's folder.
      fields: of all rows.
      name: of the case.
      detail: whether `discrete` and `matched` anchors are measured as well.
    """
    own = {
        **space_pairs.fields(pair.names),
        "num_items": len(pair.items),
        "num_pairs": grid.num_pairs,
        "dim": pair.target.shape[1],
    }
    case = Case(name, {**fields, **own}, partial(problem, pair, grid, "target"))
    measure = partial(evaluate_mrr, k=grid.settings.k, detail=detail)
    return runner.run([case], grid, measure, work, title=name)


def evaluate_mrr(
    task: Task, problem: Problem, result: Result, *, k: int, detail: bool = False
) -> list[Row]:
    """MRR by relative vectors from source to target.

    In detail also with items in the place of anchors that are none: the nearest ones (`discrete`),
    and those of a one-to-one match (`matched`).
    """
    forms = {"continuous": result.anchors}
    if detail and task.method not in runner.ITEMS:
        nearest = algorithm1.discretise(result.anchors, problem.target)
        forms["discrete"] = jnp.take(problem.target, nearest, axis=0)
        matched = algorithm1.matched(problem, result.anchors)
        forms["matched"] = jnp.take(problem.target, matched, axis=0)
    labels = {"representation": "relative", "optimised": task.case.fields["target"]}
    return [
        task.row("mrr", evaluation.relative_mrr(problem, x, k), anchors=form, labels=labels)
        for form, x in forms.items()
    ]


def _scores(spaces: dict[str, Float[Array, "n d"]], k: int) -> list[Score]:
    """All metrics of each space with each, itself included, by role."""
    return [
        Score(source, target, metric, float(value))
        for (source, target), values in correspondence(spaces, k).items()
        for metric, value in values.items()
    ]
