"""The grid of an experiment: each method, space to optimise and random seed is a part of the run.

The result of a part is kept, so that a killed run resumes with the next one.
"""

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict
from tqdm import tqdm

from anchor_opt import methods
from anchor_opt.methods import METHODS, NEED_PAIRS, algorithm1
from anchor_opt.problem import Problem, Result, Run
from common import csls
from common.errors import UserError
from common.linear import apply_map, procrustes, unit
from common.run import train
from common.run.results import Row, markdown, select
from common.run.settings import settings
from common.run.workdir import Workdir, read_arrays, write_arrays

ROLES = ("source", "target")  # of the two spaces of an experiment
METHOD_TITLES = {
    "gt": "GT",
    "seed": "Seed",
    "algorithm1_printed": "Algorithm 1 as printed",
    "algorithm1": "Algorithm 1",
    "bootstrap": "Bootstrap",
}
# The methods beside which the paper's row of its method stands.
PUBLISHED_METHOD = ("algorithm1_printed", "algorithm1", "bootstrap")
NEIGHBOURS = 15  # rows of one colour in a scatter
REPORTS = ("false_success", "false_failure")  # metrics of what searches report
SUCCESS = 0.5  # P@1 of a successful search, divided by that of the map fitted to all true pairs


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grid:
    """What all experiments share; configs/anchor_opt/retrieval.py explains the values."""

    source: str
    target: str
    num_anchors: int
    num_pairs: int
    wrong_pair_fraction: float = 0.0
    random_seeds: tuple[int, ...]
    optimise: tuple[str, ...] = ("target",)  # roles
    methods: tuple[str, ...]  # keys of METHODS
    settings: methods.Settings

    def name(self, role: str) -> str:
        """Name of the space in a role."""
        return getattr(self, role)


def grid(config: ConfigDict, **given) -> Grid:
    """The grid of a config. Without known pairs, methods that need them are left out.

    Args:
      config: of the experiment.
      **given: fields that are not read from the config.

    Raises:
      UserError: an unknown method or role.
    """
    for key, known in (("methods", METHODS), ("optimise", ROLES)):
        for name in config.get(key, ()):
            if name not in known:
                raise UserError(f"config.{key} has '{name}': choose from {', '.join(known)}.")
    chosen = [name for name in config.methods if config.num_pairs or name not in NEED_PAIRS]
    values = settings(methods.Settings, config)
    return settings(Grid, config, **{"methods": tuple(chosen), "settings": values} | given)


def other(role: str) -> str:
    """The other space of an experiment."""
    return ROLES[1 - ROLES.index(role)]


def part_name(random_seed: int, optimised: str, method: str, prefix: str = "") -> str:
    """Name of a part, `run0-target-bootstrap` for instance."""
    return f"{prefix}run{random_seed}-{optimised}-{method}"


def collect(
    grid: Grid,
    work: Workdir,
    problem: Callable[[str, int], Problem],
    measure: Callable[[Problem, str, Run, str], dict],
    prefix: str = "",
) -> tuple[list[dict], list[str]]:
    """Measures every random seed, space to optimise and method.

    Args:
      grid: of the experiment.
      work: the run's folder.
      problem: `(optimised role, random seed) -> problem`.
      measure: `(problem, optimised role, run, method) -> {"rows": [...], "notes": {...}}`; a row
        has fields of `report.Row`, with roles in the place of names, and a `value`.
      prefix: of the parts' names.

    Returns:
      The rows with method, random seed and the label `optimised`, a role, for `report.summarise`;
      and the names of the parts whose method reports that it has failed.
    """
    measured, failed = [], []
    tasks = list(itertools.product(grid.random_seeds, grid.optimise, grid.methods))
    title = f"anchor optimisation {prefix.rstrip('-')}".rstrip()
    bar = tqdm(tasks, desc=title, unit="part", leave=not prefix)
    for random_seed, role, method in bar:
        bar.set_postfix_str(f"{method}, random seed {random_seed}, optimising the {role}")
        part = part_name(random_seed, role, method, prefix)
        run = Run(settings=grid.settings, work=work, part=part, random_seed=random_seed)
        result = work.part(
            part,
            lambda: measure(problem(role, random_seed), role, run, method),  # noqa: B023
            _anchors_file(part),
        )
        train.forget_checkpoints(work, part)
        if result["notes"].get("failed"):
            failed.append(part)
        for row in result["rows"]:
            labels = {"optimised": role} | row.get("labels", {})
            measured.append(row | {"method": method, "random_seed": random_seed, "labels": labels})
    return measured, failed


def keep_anchors(
    problem: Problem, result: Result, method: str, run: Run, names: Sequence[str] | None = None
) -> list[tuple[str | None, Float[Array, "k d_target"]]]:
    """Writes the anchors of a part to anchors/PART.npz, and gives the forms that are measured.

    The file holds source_rows [k], target_vectors [k, d] and target_rows [k], the rows nearest to
    the vectors (line 10 of Algorithm 1). All rows are numbered as those of the source; -1 is a row
    of the target whose item the source lacks. Given names it also holds source_names and
    target_names [k].

    Returns:
      The 'continuous' anchors and the 'discrete' ones, which are their nearest rows; or None and
      the anchors, if these are rows already.
    """
    nearest = np.asarray(algorithm1.discretise(result.anchors, problem.target))
    shared = np.flatnonzero(problem.truth >= 0)
    item = np.full(len(problem.target), -1)
    item[problem.truth[shared]] = shared
    kept = {
        "source_rows": problem.anchors[: len(nearest)],
        "target_vectors": np.asarray(result.anchors),
        "target_rows": item[nearest],
    }
    if names is not None:
        for side in ROLES:
            kept[f"{side}_names"] = np.asarray(names)[kept[f"{side}_rows"]]
    write_arrays(run.work.path / _anchors_file(run.part), kept)
    if method in ("gt", "seed"):
        return [(None, result.anchors)]
    discrete = jnp.take(problem.target, nearest, axis=0)
    return [("continuous", result.anchors), ("discrete", discrete)]


def relative_panels(
    grid: Grid,
    work: Workdir,
    role: str,
    spaces: Mapping[str, Float[Array, "n d"]],
    prefix: str = "",
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The relative rows of both spaces over each method's kept anchors, of the first random seed.

    The anchors of the space in `role` were sought; `prefix` is that of the parts' names.
    """
    panels = {}
    for method, title in METHOD_TITLES.items():
        if method in grid.methods:
            part = part_name(grid.random_seeds[0], role, method, prefix)
            kept = read_arrays(work.path / _anchors_file(part))
            given = np.asarray(spaces[other(role)])[kept["source_rows"]]
            anchors = {role: kept["target_vectors"], other(role): given}
            panels[title] = tuple(unit(np.asarray(spaces[r]) @ anchors[r].T) for r in ROLES)
    return panels


def failures(failed: Sequence[str]) -> dict[str, str]:
    """Title -> text that lists the failed parts; random seeds are counted, not listed."""
    counted = Counter(re.sub(r"run\d+-", "", part) for part in failed)
    parts = [f"{part} ({count} random runs)" for part, count in counted.items()]
    return {"Searches that report a failure": f"{', '.join(parts)}."} if parts else {}


def rates(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> Markdown: how many searches report about themselves what is not true."""
    body = []
    for dataset in [*dict.fromkeys(row.dataset for row in rows), None]:
        wanted = {} if dataset is None else {"dataset": dataset}
        counts = [
            sum(row.mean * row.num_runs for row in select(rows, metric=metric, **wanted))
            for metric in REPORTS
        ]
        searches = sum(row.num_runs for row in select(rows, metric=REPORTS[0], **wanted))
        if searches:
            body.append([dataset or "all", *(f"{x:.0f}" for x in (searches, *counts))])
    table = markdown(("Spaces", "Searches", "False success", "False failure"), body)
    return {"Searches that report wrongly": table} if body else {}


def search_report(problem: Problem, notes: Mapping, reached: float, k: int) -> list[dict]:
    """What a search of the bootstrap says about itself beside what is true: fields of `Row`.

    Args:
      problem: with the truth.
      notes: of the search.
      reached: P@1 of the search's own map (CSLS, shared items).
      k: number of neighbours of CSLS.

    Returns:
      `relative_p_at_1`: `reached` divided by P@1 of the orthogonal map of all true pairs; `gain` of
      the search; `false_success` and `false_failure`, each 0 or 1.
    """
    shared = np.flatnonzero(problem.truth >= 0)
    true = problem.truth[shared]
    best = _truly_mapped_matches(problem.source, problem.target, shared, true, k)
    reference = np.mean(np.asarray(best)[shared] == true)
    values = {
        "relative_p_at_1": reached / max(reference, 1 / len(shared)),
        "gain": notes["corrected_agreement"],
    }
    values |= false_reports(reached >= SUCCESS * reference, notes["failed"])
    return report_rows(values)


def false_reports(succeeded: bool, failed: bool) -> dict[str, bool]:
    """Whether a search that says whether it has `failed` is wrong in one way or the other."""
    return dict(zip(REPORTS, (not succeeded and not failed, succeeded and failed), strict=True))


def report_rows(values: Mapping[str, float]) -> list[dict]:
    """Metrics of what a search says about itself, as fields of `Row`."""
    roles = dict(zip(ROLES, ROLES, strict=True)) | {"labels": {"representation": "search"}}
    return [roles | {"metric": name, "value": float(x)} for name, x in values.items()]


@partial(jax.jit, static_argnames="k")
def _truly_mapped_matches(source, target, shared, true, k: int) -> Int[Array, " n"]:
    """The target row of each source row by the orthogonal map fitted to the true pairs."""
    rotation = procrustes(source[shared], target[true])
    return csls.matches(apply_map(source, rotation), target, neighbours=k).to_target


def _anchors_file(part: str) -> str:
    return f"anchors/{part}.npz"
