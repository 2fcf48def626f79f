"""Two samples of items, one in each space, such as the vectors of two models over different texts.

The source space has one half of the items and the target space the other; the known pairs, if there
are any, are items that both have. With `config.shared` both have further items, or all of them, in
an order that tells nothing. A method sees the two halves alone; its map is judged on a third set of
items, of which both vectors are known.
"""

import dataclasses
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from matplotlib.figure import Figure
from ml_collections import ConfigDict

from anchor_opt import evaluation, runner
from anchor_opt.problem import Problem, Result, Run
from common.arrays import AnyArray
from common.data.sets import messages as catalogues
from common.errors import check_count, check_fraction
from common.linear import preprocess
from common.metrics import foscttm, precision_at_k
from common.retrieval import top_k
from common.run import records, results
from common.run.results import Row
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import messages, paired_spaces, space_pairs
from frontier.methods import METHODS, Settings, truth
from frontier.reports import halves as report
from frontier.reports import languages
from frontier.reports.searches import TRUTH


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Every method and the reference at each number of rows and of known pairs."""
    cases, grid = list(cases_of(config, cache)), runner.grid(config, METHODS, Settings)
    grid = dataclasses.replace(grid, methods=grid.methods | {TRUTH: METHODS[TRUTH]})
    measured = runner.run(cases, grid, evaluate, work, title="disjoint halves")
    figures = pictures(config, cases[0], grid, work, cache)
    return records.finish(work, results.averaged(measured.rows), report, figures=figures)


def pictures(
    config: ConfigDict, case: Case, grid: runner.Grid, work: Workdir, cache: Path
) -> dict[str, Figure]:
    """`translations`, if the first pair of spaces is of the same messages: by one more run."""
    names = space_pairs.names(config.pairs[0])
    if not config.shared or not set(names) <= set(messages.ALIGNED):
        return {}
    seed, method = config.random_seeds[0], grid.methods[config.methods[0]]
    halves = case.problem(seed)
    result = method.run(halves.problem, Run(grid.settings, work, "picture", seed))
    mapped = result.coordinates(*halves.test)
    shown = [
        _language(name, cache, halves.items, *rows)
        for name, rows in zip(names, zip(halves.test, mapped, strict=True), strict=True)
    ]
    programs = catalogues.load("en", cache).programs[halves.items]
    return {"translations": languages.picture(*shown, programs)}


def _language(name: str, cache: Path, items, vectors, mapped) -> languages.Language:
    """The third set in one of the spaces of messages."""
    encoder, language = messages.SPACES[name]
    texts = np.array(catalogues.load(language, cache).texts)[items].tolist()
    title = f"{languages.NAMES[language]}: vectors of {languages.ENCODERS[encoder]}"
    return languages.Language(np.asarray(vectors), np.asarray(mapped), texts, title)


def cases_of(config: ConfigDict, cache: Path) -> Iterator[Case]:
    """Each pair of spaces with each number of rows and of known pairs."""
    check_count("half_rows", min(config.half_rows, default=0))
    check_count("num_test", config.num_test)
    check_fraction("shared", config.shared)
    for pair in config.pairs:
        names = space_pairs.names(pair)
        needed = 2 * max(config.half_rows) + config.num_test
        data = paired_spaces.load(
            *names, num_words=needed, cache=cache, max_rows=max(needed, config.max_rows)
        )
        sweep = {"sweep_over": "shared", "sweep_value": config.shared} if config.shared else {}
        for num_rows in config.half_rows:
            count = 2 * num_rows + config.num_test
            spaces = data.source[:count], data.target[:count]
            for num_pairs in config.known_pairs:
                check_count("known_pairs", num_pairs, num_rows, "rows of each half", least=0)
                fields = {
                    "experiment": config.experiment,
                    "dataset": " -> ".join(names),
                    "num_items": num_rows,
                    "num_pairs": num_pairs,
                    **sweep,
                }
                name = f"{space_pairs.file_name(*names)}-{num_rows}-rows-{num_pairs}-pairs"
                draw = partial(split, *spaces, num_rows, num_pairs, shared=config.shared)
                yield Case(name, fields, draw)


class Halves(NamedTuple):
    """A problem whose spaces have the known pairs in common, and what methods do not see.

    Attributes:
      problem: whose anchors are the known pairs, without ranks and truth.
      other: the vectors of the problem's items in the other space: of the source's items in the
        target space, and of the target's in the source space.
      test: the vectors of the third set in both spaces.
      items: which of all items these are.
    """

    problem: Problem
    other: tuple[Float[Array, "n d_target"], Float[Array, "n d_source"]]
    test: tuple[Float[Array, "t d_source"], Float[Array, "t d_target"]]
    items: Int[np.ndarray, " t"]

    @property
    def whole(self) -> Problem:
        """The items of both halves in both spaces; row i of both is the same item."""
        source = jnp.concatenate([self.problem.source, self.other[1]])
        target = jnp.concatenate([self.other[0], self.problem.target])
        rows, none = np.arange(len(source)), np.arange(0)
        return Problem(source, target, anchors=none, target_pairs=none, truth=rows)

    def seen(self, reads_truth: bool) -> Problem:
        """What a method is given, which reads the truth or does not."""
        return self.whole if reads_truth else self.problem


def split(
    source: Float[AnyArray, "N d_source"],
    target: Float[AnyArray, "N d_target"],
    num_rows: int,
    num_pairs: int,
    random_seed: int,
    *,
    shared: float = 0.0,
) -> Halves:
    """Draws `num_rows` items for each space and takes all others as the third set.

    Vectors are scaled to unit norm, centred by the mean of those that the methods see, and scaled
    to unit norm again.

    Args:
      source: raw vectors; row i of both is the same item.
      target: raw vectors.
      num_rows: items of each half; 2 num_rows < N.
      num_pairs: the first items of the source's half stand in the place of as many items of the
        target's half, which are then in neither.
      random_seed: of the draw.
      shared: fraction of the items of each half, rounded, that the other half has too, known pairs
        included; those that are not known pairs are in an order that tells nothing.
    """
    rng = np.random.default_rng(random_seed)
    order = rng.permutation(len(source))
    first, second, test = np.split(order, [num_rows, 2 * num_rows])
    both = max(num_pairs, round(shared * num_rows))
    second = np.concatenate([first[:both], second[both:]])
    if both > num_pairs:
        rng.shuffle(second[num_pairs:])

    x, y = (preprocess(z, z[rows]) for z, rows in ((source, first), (target, second)))
    of_x, of_y = ([jnp.take(z, rows, axis=0) for rows in (first, second, test)] for z in (x, y))
    known = np.arange(num_pairs)
    problem = Problem(source=of_x[0], target=of_y[1], anchors=known, target_pairs=known)
    return Halves(problem, (of_y[0], of_x[1]), (of_x[2], of_y[2]), test)


def kept(result: Result, test: tuple[Array, Array]) -> list[dict[str, float]]:
    """FOSCTTM and top-1 of the third set, from source to target and from target to source."""
    source, target = result.coordinates(*test)
    rows = jnp.arange(len(source))
    return [
        {
            "foscttm": float(foscttm(x, y)),
            "top_1": float(precision_at_k(top_k(x, y, 1)[1], rows, 1)),
        }
        for x, y in ((source, target), (target, source))
    ]


def evaluate(task: Task, halves: Halves, result: Result) -> list[Row]:
    """Rows of both directions, and what the method says about itself beside what is true."""
    source, target = task.case.fields["dataset"].split(" -> ")
    forward, backward = {"source": source, "target": target}, {"source": target, "target": source}
    rows, scores = [], kept(result, halves.test)
    for names, of_direction in zip((forward, backward), scores, strict=True):
        fields = names | {"labels": {"representation": "mapped"}}
        rows += [task.row(metric, value, **fields) for metric, value in of_direction.items()]
    if "failed" in result.notes:
        reference = kept(truth.orthogonal(halves.whole), halves.test)
        reached, best = (np.mean([x["top_1"] for x in both]) for both in (scores, reference))
        succeeded = reached >= evaluation.SUCCESS * best
        said = {"agreement": result.notes["agreement"]}
        said |= evaluation.false_reports(succeeded, result.notes["failed"])
        fields = forward | {"labels": {"representation": "search"}}
        rows += [task.row(metric, value, **fields) for metric, value in said.items()]
    return rows
