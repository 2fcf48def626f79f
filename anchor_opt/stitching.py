"""Zero-shot stitching (Tables 2 and 6): a classifier trained on one encoder, used on another.

A head is trained on the relative representations of the decoder's space and tested on those of the
encoder's; nothing else joins the two but the anchors.
"""

import itertools
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from ml_collections import ConfigDict

from anchor_opt import head, paper_stitching, stitching_report
from anchor_opt.measure import ROLES, check, collect, fixed_role, forms
from anchor_opt.methods import METHODS, Run
from anchor_opt.problem import Problem, sample
from anchor_opt.relative import preprocess, unit_relative
from common import cli, report, train
from common.data import encoded, encoders
from common.errors import UserError
from common.metrics import correspondence
from common.workdir import Workdir, write_atomically, write_json


class Space(NamedTuple):
    """One encoder's preprocessed vectors, all centred by the training mean."""

    texts: head.Texts
    anchors: Float[Array, "k d"] | None  # of given pairs


class Anchors(NamedTuple):
    """Parallel anchors of both spaces and what they are, for the rows."""

    fixed: Float[Array, "k d_fixed"]
    moving: Float[Array, "k d_moving"]
    kind: str | None  # 'continuous', 'discrete', or None: texts already


def stitching(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Stitching two encoders' spaces: every method, decoder, encoder and head."""
    check(config)
    for name in config.heads:
        cli.choose(dict.fromkeys(head.HEADS), name, "head")
    cli.positive(config, "num_train", "num_test", "smoothing")
    cli.at_least(config, 3, "max_pieces")
    cli.positive(config, "head.epochs", "head.batch_size", "head.learning_rate")
    pair = encoded.load(
        config.source,
        config.target,
        texts=config.texts,
        num_train=config.num_train,
        num_test=config.num_test,
        max_pieces=config.max_pieces,
        smoothing=config.smoothing,
        cache=cache,
    )
    _check_anchors(config, pair)
    spaces = {role: _space(getattr(pair, role)) for role in ROLES}
    rows, failed = _collect(config, work, spaces, len(pair.classes))
    full, short = stitching_report.tables(config, rows, failed)
    write_json(work.path / "results.json", rows)
    write_atomically(work.path / "table.md", full.encode())
    stitching_report.figures(config, work, spaces, rows)
    return short


def _collect(
    config: ConfigDict, work: Workdir, spaces: dict[str, Space], num_classes: int
) -> tuple[list[dict], list[str]]:
    """The rows, and the parts that failed; a part is a random seed, optimised space, method."""
    measured, failed = [], []
    for random_seed in config.random_seeds:
        run = Run(config, work, f"seed{random_seed}-absolute", random_seed)
        rows = work.part(run.part, lambda: _absolute(spaces, run, num_classes))  # noqa: B023
        shared = {"method": "absolute", "optimised": None, "random_seed": random_seed}
        measured += [shared | row for row in rows]

    def pose(role, random_seed):
        return _problem(spaces[fixed_role(role)], spaces[role], config, random_seed)

    def measure(problem, role, run, method):
        pair = {name: spaces[name] for name in (fixed_role(role), role)}  # the fixed space first
        return _measure(problem, pair, run, method, num_classes)

    found, failed = collect(config, work, pose, measure)
    for random_seed, role in itertools.product(config.random_seeds, config.optimise):
        train.forget_checkpoints(work, f"seed{random_seed}-{role}-shared")
    return [_row(row, config, spaces) for row in report.summarise(measured + found)], failed


def _check_anchors(config: ConfigDict, pair: encoded.Pair) -> None:
    if pair.source.anchors is None:
        return
    if config.num_anchors > len(pair.source.anchors):
        raise UserError(
            f"num_anchors is {config.num_anchors}, but the files hold {len(pair.source.anchors)} "
            "pairs of anchors: ask for at most that many."
        )
    if "oracle" in config.methods:
        raise UserError(
            "The oracle needs the same training texts in both spaces, and files with given anchors "
            "do not have them: leave it out of config.methods."
        )


def _space(view: encoded.Encoded) -> Space:
    raw = jnp.asarray(view.train)
    given = None if view.anchors is None else preprocess(jnp.asarray(view.anchors), raw)
    test = preprocess(jnp.asarray(view.test), raw)
    return Space(head.Texts(preprocess(raw), test, view.train_labels, view.test_labels), given)


def _problem(fixed: Space, moving: Space, config: ConfigDict, random_seed: int) -> Problem:
    """Texts of both spaces; anchors drawn from them, or the given pairs put before them.

    With given pairs the training texts of the two spaces are not the same ones: the methods look
    for those that correspond best, and `truth` holds for the pairs alone.
    """
    sizes = {"num_anchors": config.num_anchors, "num_seeds": config.num_seeds}
    if fixed.anchors is None:
        return sample(fixed.texts.train, moving.texts.train, **sizes, random_seed=random_seed)
    rows = min(len(space.texts.train) for space in (fixed, moving))
    both = [
        jnp.concatenate([space.anchors[: config.num_anchors], space.texts.train[:rows]])
        for space in (fixed, moving)
    ]
    shuffled = sample(*both, **sizes, random_seed=random_seed)
    anchors = np.arange(config.num_anchors)
    return shuffled._replace(anchors=anchors, seeds=shuffled.truth[anchors[: config.num_seeds]])


def _measure(
    problem: Problem, pair: dict[str, Space], run: Run, method: str, num_classes: int
) -> dict:
    """Runs one method and stitches with its anchors, and with them as real texts (line 10)."""
    found = METHODS[method](problem, run)
    fixed = problem.fixed[problem.anchors[: len(found.anchors)]]
    rows = []
    for kind, moving in forms(problem, found, method, run):
        anchors = Anchors(fixed, moving, kind)
        rows += [row | {"anchors": kind} for row in _stitch(pair, anchors, run, num_classes)]
        if next(iter(pair.values())).anchors is None:
            rows += [row | {"anchors": kind} for row in _matched(pair, anchors)]
    return {"rows": rows, "notes": dict(found.notes)}


def _stitch(pair: dict[str, Space], anchors: Anchors, run: Run, num_classes: int) -> list[dict]:
    """Trains each head on each space's relative vectors and tests it on those of both."""
    texts = {}
    for (role, space), own in zip(pair.items(), (anchors.fixed, anchors.moving), strict=True):
        both = [unit_relative(x, own) for x in (space.texts.train, space.texts.test)]
        texts[role] = space.texts._replace(train=both[0], test=both[1])
    # A head of the fixed space depends on how many of its anchors there are, not on the method.
    parts = f"{_group(run)}-shared/{len(anchors.fixed)}", f"{run.part}/{anchors.kind}"
    return _heads(texts, dict(zip(pair, parts, strict=True)), run, num_classes)


def _absolute(spaces: dict[str, Space], run: Run, num_classes: int) -> list[dict]:
    """The same without anchors; an encoder of another dimension does not fit the decoder."""
    texts = {role: space.texts for role, space in spaces.items()}
    parts = {role: f"{run.part}/{role}" for role in spaces}
    rows = _heads(texts, parts, run, num_classes)
    train.forget_checkpoints(run.work, run.part)
    return [row | {"representation": "absolute", "anchors": None} for row in rows]


def _heads(texts, parts, run: Run, num_classes: int) -> list[dict]:
    rows = head.train_and_test(
        texts,
        parts,
        run.config.head,
        forms=run.config.heads,
        num_classes=num_classes,
        random_seed=run.random_seed,
        work=run.work,
    )
    return [row | {"representation": "relative"} for row in rows]


def _matched(pair: dict[str, Space], anchors: Anchors) -> list[dict]:
    """MRR of the training texts between the relative spaces: how well the anchors correspond."""
    own = zip(pair.items(), (anchors.fixed, anchors.moving), strict=True)
    spaces = {role: unit_relative(space.texts.train, mine) for (role, space), mine in own}
    return [
        {
            "source": source,
            "target": target,
            "representation": "relative",
            "head": None,
            "metric": "mrr",
            "value": float(values["mrr"]),
        }
        for (source, target), values in correspondence(spaces).items()
        if source != target
    ]


def _group(run: Run) -> str:
    """The parts of one random seed and optimised space: the part's name without the method."""
    return run.part.rpartition("-")[0]


def _row(row: dict, config: ConfigDict, spaces: dict[str, Space]) -> dict:
    """A summarised row in the form of results.json: source is the encoder, target the decoder."""
    optimised, encoder, decoder = row["optimised"], row["source"], row["target"]
    published = None
    if row["representation"] == "relative":
        published = paper_stitching.value(
            row["method"], decoder == optimised, encoder == optimised, row["metric"]
        )
    names = {role: getattr(config, role) for role in ROLES}
    standin = any(name in encoders.ENCODERS for name in names.values())
    return row | {
        "experiment": config.experiment,
        "dataset": config.texts if standin else f"{config.source}, {config.target}",
        "source": names[encoder],
        "target": names[decoder],
        "encoder": names[encoder],
        "decoder": names[decoder],
        "optimised": names.get(optimised),
        "paper_value": published[0] if published else None,
        "paper_std": published[1] if published else None,
        "paper_dataset": paper_stitching.DATASET if published else None,
        "standin": standin,
        "num_train": len(spaces[decoder].texts.train),
        "num_test": len(spaces[encoder].texts.test),
        "num_pairs": config.num_seeds,
        "dim": spaces[encoder].texts.train.shape[1],
    }
