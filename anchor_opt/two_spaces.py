"""Retrieval across two spaces of the same items: of words, and of images by two encoders."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from anchor_opt import evaluation, runner
from anchor_opt.methods import algorithm1
from anchor_opt.problem import Problem, Result, sample
from anchor_opt.runner import ROLES, Grid, other
from common.files import read_arrays
from common.linear import preprocess
from common.metrics import correspondence
from common.run.results import Row
from common.run.tasks import Case, Measured, Task
from common.run.workdir import Workdir
from common.spaces import space_pairs
from common.spaces.paired_spaces import PairedSpaces


class Pair(NamedTuple):
    """Two spaces whose row i is the same item; the rows are preprocessed."""

    names: tuple[str, str]  # of source and target, under which they are reported
    items: Sequence[str]  # names of the items
    source: Float[Array, "n d_source"]
    target: Float[Array, "n d_target"]
    ranks: tuple[Any, Any] | None  # of the items by frequency in both, if they have any

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


# Roles of the space that queries and of the other or the same, metric, value, representation, and
# form of the anchors.
Score = tuple[str, str, str, float, str, str | None]


def retrieve(
    pair: Pair, grid: Grid, work: Workdir, fields: dict[str, Any], prefix: str = ""
) -> Measured:
    """Every method on a pair of spaces, in each direction of the grid (`grid.optimise`).

    The metrics of the absolute vectors stand beside those of every method, as in the paper. All
    rows have the `fields`, and the names of tasks the `prefix`.
    """
    k = grid.settings.k
    absolute = work.part(f"{prefix}absolute", lambda: [*_scores(pair.spaces(), k, "absolute")])

    def measure(task: Task, problem: Problem, result: Result) -> list[Row]:
        forms = runner.keep_anchors(task, problem, result, work, pair.items)
        scores = *evaluate(problem, result, forms, k), *absolute
        return [
            task.row(
                metric,
                value,
                source=pair.name(source),
                target=pair.name(target),
                dim=pair.spaces()[source].shape[1],
                anchors=form,
                labels={"representation": representation},
            )
            for source, target, metric, value, representation, form in scores
        ]

    title = f"anchor optimisation {prefix.rstrip('-')}".rstrip()
    cases = [_case(pair, role, grid, fields, prefix) for role in grid.optimise]
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
    about = {
        "dataset": " -> ".join(pair.names),
        "num_items": len(pair.items),
        "num_pairs": grid.num_pairs,
        "labels": {"optimised": pair.name(sought)},
    }
    draw = partial(problem, pair, grid, sought)
    return Case(f"{prefix}{sought}", {**fields, **about}, draw)


def first_anchors(
    pair: Pair, grid: Grid, work: Workdir, prefix: str = ""
) -> dict[str, dict[str, Float[Array, "k d"]]]:
    """Method -> role -> anchors, of the first random run in the first direction of the grid."""
    sought, anchors = grid.optimise[0], {}
    for method in grid.methods:
        task = Task(_case(pair, sought, grid, {}, prefix), method, grid.random_seeds[0])
        arrays = read_arrays(work.path / runner.anchors_file(task))
        given = pair.spaces()[other(sought)][arrays["source_rows"]]
        anchors[method] = {other(sought): given, sought: arrays["target_vectors"]}
    return anchors


def evaluate(
    problem: Problem,
    result: Result,
    forms: Mapping[str | None, Float[Array, "k d_target"]],
    k: int,
) -> Iterator[Score]:
    """Metrics by relative vectors of each form of the anchors, and P@1 by the method's own maps.

    Of a search also what it says of itself.
    """
    sought, given = problem.sought, other(problem.sought)
    for form, anchors in forms.items():
        vectors = dict(zip((given, sought), problem.relative(anchors), strict=True))
        yield from _scores({role: vectors[role] for role in ROLES}, k, "relative", form)
    if result.maps is not None:
        precision = evaluation.precision_of_maps(problem, result, k)
        reached = {given: precision.to_target, sought: precision.to_source}
        for role in ROLES:
            yield role, other(role), "p_at_1", reached[role], "mapped", None
        if "failed" in result.notes:
            scores = evaluation.search_scores(problem, result.notes, precision.to_target, k)
            for metric, value in scores.items():
                yield given, sought, metric, value, "search", None


def mrr_case(pair: Pair, grid: Grid, name: str, fields: dict[str, Any]) -> Case:
    """The direction from source to target, for `evaluate_mrr`; `fields` are those of all rows."""
    sizes = {"num_items": len(pair.items), "num_pairs": grid.num_pairs}
    about = {**space_pairs.fields(pair.names), **sizes, "dim": pair.target.shape[1]}
    return Case(name, {**about, **fields}, partial(problem, pair, grid, "target"))


def evaluate_mrr(
    task: Task, problem: Problem, result: Result, *, k: int, detail: bool = False
) -> list[Row]:
    """MRR by relative vectors from source to target, whose anchors are sought.

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


def _scores(
    spaces: dict[str, Float[Array, "n d"]], k: int, representation: str, form: str | None = None
) -> Iterator[Score]:
    """All metrics of each space with each, itself included, by role."""
    for (source, target), values in correspondence(spaces, k).items():
        for metric, value in values.items():
            yield source, target, metric, float(value), representation, form
