"""Zero-shot stitching (Tables 2 and 6): a classifier trained on one encoder, used on another.

A head is trained on the relative representations of one space, the decoder's, and tested on those
of another, the encoder's. The anchors of one space are sought with unlabelled texts from outside
the task, or with the training texts themselves.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, SupportsFloat

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from anchor_opt import head, runner
from anchor_opt.problem import Problem, Result, check_sizes, partly_shared, sample
from anchor_opt.relative import unit_relative
from anchor_opt.reports import stitching as report
from anchor_opt.runner import ROLES, Grid, other
from common.encoders import texts as text_encoders
from common.errors import UserError
from common.linear import preprocess
from common.metrics import correspondence
from common.run import records, results, tasks, train
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import labelled_vectors, messages, space_pairs
from common.spaces.labelled_vectors import LabelledVectors

Spaces = dict[str, LabelledVectors]  # role -> preprocessed vectors


class Pair(NamedTuple):
    """Two encoders by name, the vectors that they give, and how heads are trained on these."""

    names: tuple[str, str]
    spaces: Spaces
    train_heads: Callable[..., list[head.Score]]  # `head.train_and_test` in the run's folder
    fields: dict[str, Any]  # of all rows
    ordered: bool  # whether differences of class indices mean something

    def name(self, role: str) -> str:
        """Name of the space in a role."""
        return self.names[ROLES.index(role)]


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Stitches each pair of encoders: every method, decoder, encoder and head."""
    grid, rows = runner.grid(config), []
    for text in config.pairs:
        names = space_pairs.names(text)
        pair, prefix = load(names, grid, config, work, cache), space_pairs.file_name(*names)

        def absolute(task: Task, pair: Pair = pair) -> tuple[list[Row], dict]:
            """Heads on the vectors themselves, without anchors."""
            parts = {role: f"{task.name}/{role}" for role in ROLES}
            return head_rows(task, pair, pair.spaces, parts, representation="absolute"), {}

        whole = tasks.grid([Case(prefix, pair.fields, sample)], ["absolute"], grid.random_seeds)
        on_vectors = tasks.run(whole, absolute, work)
        cases = [_case(pair, prefix, grid, config, sought) for sought in grid.optimise]
        on_anchors = runner.run(cases, grid, partial(evaluate, pair=pair, work=work), work)
        for case in cases:
            for random_seed in grid.random_seeds:
                train.forget_checkpoints(work, _shared_heads(case.name, random_seed))
        rows += results.averaged(on_vectors.rows + on_anchors.rows)
    return records.finish(work, rows, report)


def load(
    names: tuple[str, str], grid: Grid, config: ConfigDict, work: Workdir, cache: Path
) -> Pair:
    """Encodes the texts, or reads the user's files; UserError: the grid does not fit these."""
    unlabelled = config.num_unlabelled
    encoded = {*names} & {*text_encoders.ENCODERS, *messages.SPACES}  # the others are files
    if encoded == {*names}:  # whose sizes are known before texts are encoded
        check_sizes(grid.num_pairs, grid.num_anchors, unlabelled or config.num_train)
    # As in `partly_shared`, an encoder shares at least all anchors with the other.
    in_common = min(max(round(config.shared * unlabelled), grid.num_anchors), unlabelled)
    values = ("texts", "num_train", "num_test", "max_pieces", "smoothing")
    options = {name: config[name] for name in values}
    options["num_unlabelled"] = 2 * unlabelled - in_common
    data = labelled_vectors.load(*names, **options, cache=cache)
    anchors = data.source.anchors
    if anchors is not None and grid.num_anchors > len(anchors):
        raise UserError(
            f"num_anchors is {grid.num_anchors}, but the files hold {len(anchors)} pairs of "
            "anchors: ask for at most that many."
        )
    if anchors is not None and "lstsq_truth" in grid.methods:
        raise UserError(
            "lstsq_truth needs the same training texts in both spaces, which files with anchors do "
            "not have: leave it out of config.methods."
        )
    spaces = {role: preprocessed(getattr(data, role)) for role in ROLES}
    training: dict[str, Any] = {"training": settings(head.Training, config.head), "work": work}
    training |= {"forms": config.heads, "num_classes": len(data.classes)}
    labels = {}
    if all(space.unlabelled is not None for space in spaces.values()):
        labels = {"num_unlabelled": unlabelled, "shared": in_common}
    dataset = config.texts if encoded else ", ".join(names)
    fields: dict[str, Any] = {"experiment": "stitching", "dataset": dataset}
    fields |= {"num_pairs": grid.num_pairs, "proxy": bool(encoded), "labels": labels}
    return Pair(names, spaces, partial(head.train_and_test, **training), fields, data.ordered)


def _case(pair: Pair, prefix: str, grid: Grid, config: ConfigDict, sought: str) -> Case:
    """The direction in which the anchors of the space in the role `sought` are sought."""
    labels = {"optimised": pair.name(sought), "given": pair.name(other(sought))}
    fields = {**pair.fields, "labels": {**pair.fields["labels"], **labels}}
    spaces = pair.spaces[other(sought)], pair.spaces[sought]
    sizes = config.num_unlabelled, config.shared
    return Case(f"{prefix}-{sought}", fields, partial(draw, *spaces, grid, *sizes, sought))


def preprocessed(vectors: LabelledVectors) -> LabelledVectors:
    """Unit rows, centred by the mean of the training rows, unit rows again.

    Unlabelled texts are left as they are: see `draw`.
    """
    train_rows, anchors = jnp.asarray(vectors.train), vectors.anchors
    if anchors is not None:
        vectors = vectors._replace(anchors=preprocess(anchors, train_rows))
    test = preprocess(vectors.test, train_rows)
    return vectors._replace(train=preprocess(train_rows), test=test)


def draw(
    source: LabelledVectors,
    target: LabelledVectors,
    grid: Grid,
    num_unlabelled: int,
    shared: float,
    sought: str,
    random_seed: int,
) -> Problem:
    """The problem of finding anchors of `target`, parallel to anchors of `source`.

    Unlabelled texts, if both spaces have some, are searched alone, and centred by their own mean;
    anchors are some of those that the spaces share. Otherwise anchors are drawn from the training
    texts, which both spaces share. Files with anchors have different training texts: the anchors
    are then put before the training texts of each space, and `truth` is right for them only.
    """
    sizes = {"num_anchors": grid.num_anchors, "num_pairs": grid.num_pairs}
    if source.unlabelled is not None and target.unlabelled is not None:
        unlabelled, sizes["num_rows"] = (source.unlabelled, target.unlabelled), num_unlabelled
        drawn = partly_shared(*unlabelled, random_seed, shared=shared, **sizes)
        source_rows, target_rows = preprocess(drawn.source), preprocess(drawn.target)
        return drawn._replace(source=source_rows, target=target_rows, sought=sought)
    if source.anchors is None:
        shuffled = sample(source.train, target.train, **sizes, random_seed=random_seed)
        return shuffled._replace(sought=sought)
    num_rows = min(len(source.train), len(target.train))
    spaces = [
        jnp.concatenate([space.anchors[: grid.num_anchors], space.train[:num_rows]])
        for space in (source, target)
    ]
    shuffled = sample(*spaces, **sizes, random_seed=random_seed)
    anchors = np.arange(grid.num_anchors)
    pairs = shuffled.truth[anchors[: grid.num_pairs]]
    return shuffled._replace(anchors=anchors, target_pairs=pairs, sought=sought)


def evaluate(
    task: Task, problem: Problem, result: Result, *, pair: Pair, work: Workdir
) -> list[Row]:
    """Stitches with the anchors of a method, and with the nearest texts in their place."""
    sought, given = problem.sought, other(problem.sought)
    given_anchors = problem.source_anchors[: len(result.anchors)]
    # The heads of the given space depend on the number of its anchors but not on the method.
    shared = f"{_shared_heads(task.case.name, task.random_seed)}/{len(given_anchors)}"
    rows = []
    for form, anchors in runner.keep_anchors(task, problem, result, work).items():
        spaces = {
            role: pair.spaces[role]._replace(
                train=unit_relative(pair.spaces[role].train, basis),
                test=unit_relative(pair.spaces[role].test, basis),
            )
            for role, basis in ((given, given_anchors), (sought, anchors))
        }
        parts = {given: shared, sought: f"{task.name}/{form}"}
        about = {"form": form, "representation": "relative"}
        rows += head_rows(task, pair, spaces, parts, **about)
        if pair.spaces[given].anchors is None:
            # MRR of the training texts across the relative spaces: do the anchors correspond?
            scores = correspondence({role: space.train for role, space in spaces.items()})
            for way in ((given, sought), (sought, given)):
                rows.append(row_of(task, pair, way, "mrr", scores[way]["mrr"], **about))
    return rows


def _shared_heads(case: str, random_seed: int) -> str:
    """Where the heads of the space whose anchors are given are checkpointed."""
    return f"{case}-shared-seed{random_seed}"


def head_rows(
    task: Task, pair: Pair, spaces: Spaces, parts: dict[str, str], **about: Any
) -> list[Row]:
    """F1 of the heads of all spaces, and MAE if classes have an order."""
    return [
        row_of(task, pair, (x.encoder, x.decoder), metric, value, head=x.form, **about)
        for x in pair.train_heads(spaces, parts, random_seed=task.random_seed)
        for metric, value in x.metrics.items()
        if pair.ordered or metric != "mae"
    ]


def row_of(
    task: Task, pair: Pair, way: tuple[str, str], metric: str, value: SupportsFloat, **labels: Any
) -> Row:
    """A metric from the encoder in one role to the decoder in another; `form` of the anchors."""
    test, train = pair.spaces[way[0]].test, pair.spaces[way[1]].train
    names = {"source": pair.name(way[0]), "target": pair.name(way[1])}
    sizes = {"num_items": len(test), "dim": test.shape[1]}
    anchors, labels = labels.pop("form", None), {"num_train": len(train), **labels}
    return task.row(metric, value, **names, **sizes, anchors=anchors, labels=labels)
