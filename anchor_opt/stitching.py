"""Zero-shot stitching (Tables 2 and 6): a classifier trained on one encoder, used on another.

A head is trained on the relative representations of one space, the decoder's, and tested on those
of another, the encoder's. The anchors of one space are sought with unlabelled texts from outside
the task, or with the training texts themselves.
"""

import dataclasses
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from anchor_opt.methods import METHODS
from anchor_opt.models import head
from anchor_opt.problem import Problem, Run, partly_shared, sample
from anchor_opt.relative import unit_relative
from anchor_opt.runner import ROLES, Grid, collect, keep_anchors, other
from common.encoders import texts as text_encoders
from common.errors import UserError
from common.linear import preprocess
from common.metrics import correspondence
from common.run import results, train
from common.run.workdir import Workdir
from common.spaces import labelled_vectors
from common.spaces.labelled_vectors import LabelledVectors

Spaces = dict[str, LabelledVectors]  # role -> preprocessed vectors


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Texts and heads; configs/anchor_opt/stitching.py explains each value."""

    texts: str
    num_train: int
    num_test: int
    num_unlabelled: int
    shared: float
    max_pieces: int
    smoothing: float
    heads: tuple[str, ...]
    head: head.Training


def run(
    grid: Grid, settings: Settings, work: Workdir, cache: Path, prefix: str = ""
) -> tuple[Spaces, list[results.Row], list[str]]:
    """Stitches two encoders' spaces: every method, decoder, encoder and head.

    Returns the spaces, rows with roles in the place of names, and the parts that failed; `prefix`
    is that of the parts' names.
    """
    # As in `partly_shared`, an encoder shares at least all anchors with the other.
    in_common = max(round(settings.shared * settings.num_unlabelled), grid.num_anchors)
    in_common = min(in_common, settings.num_unlabelled)
    pair = labelled_vectors.load(
        grid.source,
        grid.target,
        texts=settings.texts,
        num_train=settings.num_train,
        num_test=settings.num_test,
        num_unlabelled=2 * settings.num_unlabelled - in_common,
        max_pieces=settings.max_pieces,
        smoothing=settings.smoothing,
        cache=cache,
    )
    given = pair.source.anchors
    if given is not None and grid.num_anchors > len(given):
        raise UserError(
            f"num_anchors is {grid.num_anchors}, but the files hold {len(given)} pairs of anchors: "
            "ask for at most that many."
        )
    if given is not None and "lstsq_truth" in grid.methods:
        raise UserError(
            "lstsq_truth needs the same training texts in both spaces, which files with anchors do "
            "not have: leave it out of config.methods."
        )
    spaces = {role: preprocessed(getattr(pair, role)) for role in ROLES}
    train_heads = partial(
        head.train_and_test,
        training=settings.head,
        forms=settings.heads,
        num_classes=len(pair.classes),
        work=work,
    )
    measured = []
    for random_seed in grid.random_seeds:  # heads on the vectors themselves, without anchors
        part = f"{prefix}run{random_seed}-absolute"
        parts = {role: f"{part}/{role}" for role in ROLES}
        rows = work.part(part, partial(train_heads, spaces, parts, random_seed=random_seed))
        train.forget_checkpoints(work, part)
        for row in rows:
            labels = row["labels"] | {"representation": "absolute"}
            row |= {"method": "absolute", "random_seed": random_seed, "labels": labels}
        measured += rows

    def problem(optimised: str, random_seed: int) -> Problem:
        both = spaces[other(optimised)], spaces[optimised]
        return sample_problem(*both, grid, settings, random_seed)

    measure = partial(_measure, spaces, train_heads)
    found, failed = collect(grid, work, problem, measure, prefix)
    for random_seed, role in itertools.product(grid.random_seeds, grid.optimise):
        train.forget_checkpoints(work, f"{prefix}run{random_seed}-{role}-shared")
    pools = {}
    if all(space.unlabelled is not None for space in spaces.values()):
        pools = {"num_unlabelled": settings.num_unlabelled, "shared": in_common}
    proxy = any(grid.name(role) in text_encoders.ENCODERS for role in ROLES)
    rows = results.summarise(
        measured + found,
        experiment="stitching",
        dataset=settings.texts if proxy else f"{grid.source}, {grid.target}",
        num_pairs=grid.num_pairs,
        proxy=proxy,
        labels=pools,
    )
    return spaces, rows, failed


def preprocessed(vectors: LabelledVectors) -> LabelledVectors:
    """Unit rows, centred by the mean of the training rows, unit rows again.

    Unlabelled texts are left as they are: see `sample_problem`.
    """
    train_rows = jnp.asarray(vectors.train)
    anchors = vectors.anchors
    return vectors._replace(
        train=preprocess(train_rows),
        test=preprocess(jnp.asarray(vectors.test), train_rows),
        anchors=None if anchors is None else preprocess(jnp.asarray(anchors), train_rows),
    )


def sample_problem(
    source: LabelledVectors,
    target: LabelledVectors,
    grid: Grid,
    settings: Settings,
    random_seed: int,
) -> Problem:
    """The problem of finding anchors of `target`, parallel to anchors of `source`.

    If both spaces have unlabelled texts, these alone are searched, and anchors are some of those
    that the spaces share. They have a mean of their own in each space, which is subtracted.
    Otherwise anchors are drawn from the training texts, which both spaces share. If the spaces have
    anchors of their own, their training texts are different ones: the given anchors are then put
    before the training texts of each space, and `truth` is right for these anchors only.
    """
    sizes = {"num_anchors": grid.num_anchors, "num_pairs": grid.num_pairs}
    if source.unlabelled is not None and target.unlabelled is not None:
        drawn = partly_shared(
            source.unlabelled,
            target.unlabelled,
            num_rows=settings.num_unlabelled,
            shared=settings.shared,
            **sizes,
            random_seed=random_seed,
        )
        rows = (preprocess(jnp.asarray(rows)) for rows in (drawn.source, drawn.target))
        return drawn._replace(**dict(zip(ROLES, rows, strict=True)))
    if source.anchors is None:
        return sample(source.train, target.train, **sizes, random_seed=random_seed)
    num_rows = min(len(source.train), len(target.train))
    both = [
        jnp.concatenate([space.anchors[: grid.num_anchors], space.train[:num_rows]])
        for space in (source, target)
    ]
    shuffled = sample(*both, **sizes, random_seed=random_seed)
    anchors = np.arange(grid.num_anchors)
    return shuffled._replace(
        anchors=anchors, target_pairs=shuffled.truth[anchors[: grid.num_pairs]]
    )


def _measure(
    spaces: Spaces, train_heads: Callable, problem: Problem, optimised: str, run: Run, method: str
) -> dict:
    """Runs a method and stitches with its anchors, and with the nearest texts in their place."""
    result = METHODS[method](problem, run)
    given = other(optimised)
    given_anchors = problem.source_anchors[: len(result.anchors)]
    # The heads of the given space depend on the number of its anchors but not on the method.
    shared = f"{run.part.rpartition('-')[0]}-shared/{len(given_anchors)}"
    rows = []
    for kind, anchors in keep_anchors(problem, result, method, run):
        relative = {
            role: spaces[role]._replace(
                train=unit_relative(spaces[role].train, basis),
                test=unit_relative(spaces[role].test, basis),
            )
            for role, basis in ((given, given_anchors), (optimised, anchors))
        }
        parts = {given: shared, optimised: f"{run.part}/{kind}"}
        found = train_heads(relative, parts, random_seed=run.random_seed)
        if spaces[given].anchors is None:
            # MRR of the training texts across the relative spaces: do the anchors correspond?
            scores = correspondence({role: space.train for role, space in relative.items()})
            found += [
                {"source": source, "target": target, "metric": "mrr", "value": float(values["mrr"])}
                for (source, target), values in scores.items()
                if source != target
            ]
        for row in found:
            labels = row.pop("labels", {}) | {"representation": "relative"}
            rows.append(row | {"anchors": kind, "labels": labels})
    return {"rows": rows, "notes": dict(result.notes)}
