"""Zero-shot stitching (Tables 2 and 6): a classifier trained on one encoder, used on another.

A head is trained on the relative representations of one space, the decoder's, and tested on those
of another, the encoder's. The anchors of one space are sought with unlabelled texts from outside
the task, or with the training texts themselves.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from anchor_opt import runner
from anchor_opt.models import head
from anchor_opt.problem import Problem, Result, partly_shared, sample
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
from common.spaces import labelled_vectors, space_pairs
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
    grid, values = runner.grid(config), settings(Settings, config)
    rows, failed = [], []
    for text in config.pairs:
        names = space_pairs.names(text)
        pair, prefix = load(names, grid, values, work, cache), space_pairs.file_name(*names)
        absolute = tasks.grid([Case(prefix, pair.fields, sample)], ["absolute"], grid.random_seeds)
        on_vectors = tasks.run(absolute, partial(measure_absolute, pair=pair), work)
        cases = [_case(pair, prefix, grid, values, sought) for sought in grid.optimise]
        on_anchors = runner.run(cases, grid, partial(evaluate, pair=pair, work=work), work)
        for case in cases:
            for random_seed in grid.random_seeds:
                train.forget_checkpoints(work, _shared_heads(case.name, random_seed))
        rows += results.averaged(on_vectors.rows + on_anchors.rows)
        failed += on_anchors.failed
    tables = report.tables(rows, num_anchors=grid.num_anchors, failed=failed)
    text = f"{results.joined(tables)}\n\n{report.NOTES}"
    return records.finish(work, rows, text, report.figures(rows))


def load(names: tuple[str, str], grid: Grid, values: Settings, work: Workdir, cache: Path) -> Pair:
    """Encodes the texts, or reads the user's files.

    Raises:
      UserError: as `labelled_vectors.load`, or a grid that does not fit anchors in the files.
    """
    # As in `partly_shared`, an encoder shares at least all anchors with the other.
    in_common = max(round(values.shared * values.num_unlabelled), grid.num_anchors)
    in_common = min(in_common, values.num_unlabelled)
    data = labelled_vectors.load(
        *names,
        texts=values.texts,
        num_train=values.num_train,
        num_test=values.num_test,
        num_unlabelled=2 * values.num_unlabelled - in_common,
        max_pieces=values.max_pieces,
        smoothing=values.smoothing,
        cache=cache,
    )
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
    train_heads = partial(
        head.train_and_test,
        training=values.head,
        forms=values.heads,
        num_classes=len(data.classes),
        work=work,
    )
    labels = {}
    if all(space.unlabelled is not None for space in spaces.values()):
        labels = {"num_unlabelled": values.num_unlabelled, "shared": in_common}
    proxy = any(name in text_encoders.ENCODERS for name in names)
    fields = {
        "experiment": "stitching",
        "dataset": values.texts if proxy else ", ".join(names),
        "num_pairs": grid.num_pairs,
        "proxy": proxy,
        "labels": labels,
    }
    return Pair(names, spaces, train_heads, fields, data.ordered)


def _case(pair: Pair, prefix: str, grid: Grid, values: Settings, sought: str) -> Case:
    """The direction in which the anchors of the space in the role `sought` are sought."""
    labels = {"optimised": pair.name(sought), "given": pair.name(other(sought))}
    fields = {**pair.fields, "labels": {**pair.fields["labels"], **labels}}
    spaces = pair.spaces[other(sought)], pair.spaces[sought]
    return Case(
        f"{prefix}-{sought}", fields, partial(sample_problem, *spaces, grid, values, sought)
    )


def preprocessed(vectors: LabelledVectors) -> LabelledVectors:
    """Unit rows, centred by the mean of the training rows, unit rows again.

    Unlabelled texts are left as they are: see `sample_problem`.
    """
    train_rows = jnp.asarray(vectors.train)
    anchors = vectors.anchors
    return vectors._replace(
        train=preprocess(train_rows),
        test=preprocess(vectors.test, train_rows),
        anchors=None if anchors is None else preprocess(anchors, train_rows),
    )


def sample_problem(
    source: LabelledVectors,
    target: LabelledVectors,
    grid: Grid,
    values: Settings,
    sought: str,
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
            num_rows=values.num_unlabelled,
            shared=values.shared,
            **sizes,
            random_seed=random_seed,
        )
        return drawn._replace(
            source=preprocess(drawn.source),
            target=preprocess(drawn.target),
            sought=sought,
        )
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


def measure_absolute(task: Task, *, pair: Pair) -> tuple[list[Row], dict[str, Any]]:
    """Heads on the vectors themselves, without anchors."""
    parts = {role: f"{task.name}/{role}" for role in ROLES}
    scores = pair.train_heads(pair.spaces, parts, random_seed=task.random_seed)
    fields = {"labels": {"representation": "absolute"}}
    return [row for score in scores for row in _head_rows(task, pair, score, fields)], {}


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
        relative = {
            role: pair.spaces[role]._replace(
                train=unit_relative(pair.spaces[role].train, basis),
                test=unit_relative(pair.spaces[role].test, basis),
            )
            for role, basis in ((given, given_anchors), (sought, anchors))
        }
        fields = {"anchors": form, "labels": {"representation": "relative"}}
        parts = {given: shared, sought: f"{task.name}/{form}"}
        for score in pair.train_heads(relative, parts, random_seed=task.random_seed):
            rows += _head_rows(task, pair, score, fields, sought)
        if pair.spaces[given].anchors is None:
            # MRR of the training texts across the relative spaces: do the anchors correspond?
            scores = correspondence({role: space.train for role, space in relative.items()})
            for encoder, decoder in ((given, sought), (sought, given)):
                of_spaces = _space_fields(pair, encoder, decoder, fields)
                rows.append(task.row("mrr", scores[encoder, decoder]["mrr"], **of_spaces))
    return rows


def _shared_heads(case: str, random_seed: int) -> str:
    """Where the heads of the space whose anchors are given are checkpointed."""
    return f"{case}-shared-seed{random_seed}"


def _space_fields(pair: Pair, encoder: str, decoder: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a row from the encoder in one role to the decoder in the other."""
    return {
        **fields,
        "source": pair.name(encoder),
        "target": pair.name(decoder),
        "num_items": len(pair.spaces[encoder].test),
        "dim": pair.spaces[encoder].train.shape[1],
        "labels": {**fields["labels"], "num_train": len(pair.spaces[decoder].train)},
    }


def _head_rows(
    task: Task, pair: Pair, score: head.Score, fields: dict[str, Any], sought: str | None = None
) -> list[Row]:
    """F1 of a head, and MAE if classes have an order; with the paper's if anchors are sought."""
    of_spaces = _space_fields(pair, score.encoder, score.decoder, fields)
    of_spaces["labels"]["head"] = score.form
    rows = []
    scores = {"f1": score.f1, "mae": score.mae} if pair.ordered else {"f1": score.f1}
    for metric, value in scores.items():
        published = {}
        if sought:
            directions = score.decoder == sought, score.encoder == sought
            published = report.published(task.method, *directions, metric)
        rows.append(task.row(metric, value, **of_spaces, **published))
    return rows
