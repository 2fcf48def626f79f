"""What retrieval and stitching share: checks, the walk over the parts of a run, anchors as kept."""

import itertools
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict
from tqdm import tqdm

from anchor_opt import algorithm1, search
from anchor_opt.methods import FROM_SEEDS, METHODS, Found, Run
from anchor_opt.problem import Problem
from common import cli, train
from common.workdir import Workdir, read_arrays, write_arrays

ROLES = ("source", "target")


def check(config: ConfigDict) -> None:
    """Names that are wrong are said at the start; without seeds, methods that need them go.

    Raises:
      UserError: an unknown method, space or choice.
    """
    for method in config.methods:
        cli.choose(METHODS, method, "method")
    for role in config.optimise:
        cli.choose(dict.fromkeys(ROLES), role, "space to optimise")
    cli.choose(dict.fromkeys(("fixed", "moving")), config.algorithm1.permute, "algorithm1.permute")
    cli.choose(dict.fromkeys(("hard", "soft")), config.algorithm1.plan, "algorithm1.plan")
    cli.positive(config, *(name for name in ("num_words", "max_rows") if name in config))
    cli.positive(config, "num_anchors", "k", "algorithm1.learning_rate")
    cli.positive(config, "algorithm1.sinkhorn_epsilon", "algorithm1.sinkhorn_iterations")
    cli.positive(config, "iterated_procrustes.neighbours", "self_learning.neighbours")
    cli.positive(config, "self_learning.keep", "self_learning.patience")
    search.check(config)
    if not config.num_seeds:
        config.methods = tuple(method for method in config.methods if method not in FROM_SEEDS)


def fixed_role(moving: str) -> str:
    """The space whose anchors are given, by the one whose anchors are sought."""
    return ROLES[1 - ROLES.index(moving)]


def collect(
    config: ConfigDict,
    work: Workdir,
    pose: Callable[[str, int], Problem],
    measure: Callable[[Problem, str, Run, str], dict],
    prefix: str = "",
) -> tuple[list[dict], list[str]]:
    """Measures every random seed, optimised space and method: rows, and the parts that failed.

    Each such combination is a part of the run: its result is kept in parts/.

    Args:
      config: of the experiment.
      work: the run's folder.
      pose: `(role of the moving space, random seed) -> problem`.
      measure: `(problem, role, run, method) -> {"rows": [...], "notes": {...}}`.
      prefix: of the parts' names.
    """
    measured, failed = [], []
    tasks = list(itertools.product(config.random_seeds, config.optimise, config.methods))
    bar = tqdm(tasks, desc=f"anchor optimisation {prefix.rstrip('-')}".rstrip(), unit="part")
    for random_seed, role, method in bar:
        bar.set_postfix_str(f"{method}, random seed {random_seed}, optimising the {role}")
        run = Run(config, work, f"{prefix}seed{random_seed}-{role}-{method}", random_seed)
        result = work.part(
            run.part,
            lambda: measure(pose(role, random_seed), role, run, method),  # noqa: B023
            _file(run.part),
        )
        train.forget_checkpoints(work, run.part)
        if result["notes"].get("failed"):
            failed.append(run.part)
        shared = {"method": method, "optimised": role, "random_seed": random_seed}
        measured += [shared | row for row in result["rows"]]
    return measured, failed


def forms(
    problem: Problem, found: Found, method: str, run: Run, names: Sequence[str] | None = None
) -> list[tuple[str | None, Float[Array, "k d_moving"]]]:
    """The anchors as they are and as their nearest items (line 10 of Algorithm 1); keeps both.

    anchors/PART.npz holds fixed_rows [k], moving_vectors [k, d], moving_rows [k], rows numbered as
    in the spaces before the shuffle, and with names fixed_names and moving_names [k].

    Args:
      problem: the task.
      found: what the method found.
      method: its name.
      run: where it ran.
      names: of the rows.

    Returns:
      'continuous' and 'discrete' anchors, or None and those that are items already.
    """
    nearest = np.asarray(algorithm1.discretise(found.anchors, problem.moving))
    kept = {
        "fixed_rows": problem.anchors[: len(nearest)],
        "moving_vectors": np.asarray(found.anchors),
        "moving_rows": np.argsort(problem.truth)[nearest],
    }
    if names is not None:
        for side in ("fixed", "moving"):
            kept[f"{side}_names"] = np.asarray(names)[kept[f"{side}_rows"]]
    write_arrays(run.work.path / _file(run.part), kept)
    if method in ("gt", "seed"):
        return [(None, found.anchors)]
    return [("continuous", found.anchors), ("discrete", jnp.take(problem.moving, nearest, axis=0))]


def kept_anchors(
    work: Workdir, part: str
) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, "k d_moving"]]:
    """Rows of the fixed space and vectors of the moving one that a part has kept."""
    kept = read_arrays(work.path / _file(part))
    return kept["fixed_rows"], kept["moving_vectors"]


def _file(part: str) -> str:
    return f"anchors/{part}.npz"
