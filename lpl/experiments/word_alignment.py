"""Tables 1a and 2: every method on every pair of spaces and number of known pairs."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int
from ml_collections import ConfigDict

from common.errors import UserError, check_choice
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from lpl import bilingual_data, methods, translation
from lpl.bilingual_data import BilingualData
from lpl.reports import word_alignment as report

NEAREST_WORDS_OF = "lpa_mse"  # the method whose nearest words are shown, as in Table 2


class Files(NamedTuple):
    """Names or paths of a pair of spaces and its dictionaries, and the most known pairs."""

    source: str
    target: str
    dictionary: str
    test_dictionary: str
    max_pairs: int


class Measured(NamedTuple):
    """Rows averaged over random seeds, lines on the dictionaries, nearest words by data set."""

    rows: list[Row]
    coverage: list[list[str]]
    nearest: dict[str, dict]


class Problem(NamedTuple):
    """What a method is given, and what it is asked for.

    Attributes:
      data: the spaces and their dictionary.
      known: the spaces and their known pairs.
      queries: source rows to translate.
      translations: target rows that translate each query, padded with -1.
      shown_words: source words whose nearest words are shown.
    """

    data: BilingualData
    known: methods.Problem
    queries: Int[Array, " q"]
    translations: Int[Array, "q g"]
    shown_words: tuple[str, ...]


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Measures all methods, and returns the tables."""
    rows, coverage, nearest = measure_all(config, work, cache)
    return records.finish(work, rows, report, quoted=report.quoted(coverage, nearest))


def measure_all(config: ConfigDict, work: Workdir, cache: Path) -> Measured:
    """Measures all methods on every pair of spaces."""
    sizes = settings(bilingual_data.Sizes, config)
    hubness = settings(translation.Hubness, config)
    for name in config.methods:
        check_choice("method", name, methods.METHODS)
    fits = {name: settings(methods.METHODS[name], config[name]).fit for name in config.methods}

    def measure(task: Task) -> tuple[list[Row], dict[str, Any]]:
        problem = task.case.problem(task.random_seed)
        source, target = fits[task.method](problem.known, work, task.name)
        rows = []
        for retrieval in config[task.method].retrieval:
            queries = problem.queries, problem.translations
            scores = translation.precision(source, target, *queries, retrieval, hubness)
            rows += [task.row(*score, labels={"retrieval": retrieval}) for score in scores.items()]
        words = problem.shown_words if task.method == NEAREST_WORDS_OF else ()
        count = config.num_neighbours
        return rows, {"nearest": report.nearest_words(problem.data, source, target, words, count)}

    rows, coverage, nearest = [], [], {}
    for number, files in enumerate(_files(config), 1):
        data = bilingual_data.load(files[:3], files[3], max_rows=config.max_rows, cache=cache)
        prefix = "-".join([str(number), *(Path(name).name for name in files[:2])])
        fields = {"experiment": config.experiment, "labels": {"split": sizes.split}}
        cases = _cases(data, files.max_pairs, config, sizes, prefix, fields)
        grid = tasks.grid(cases, config.methods, config.random_seeds)
        measured = tasks.run(grid, measure, work, title=data.title)
        rows += measured.rows
        coverage += report.coverage(data)
        for notes in measured.notes.values():
            if notes["nearest"]:
                nearest[data.title] = notes["nearest"]
    return Measured(results.averaged(rows + report.gains(rows)), coverage, nearest)


def _files(config: ConfigDict) -> Iterable[Files]:
    tests = config.test_dictionaries or ("",) * len(config.sources)
    limits = config.max_pairs or (max(config.num_pairs),) * len(config.sources)
    lists = config.sources, config.targets, config.dictionaries, tests, limits
    if len(set(map(len, lists))) > 1:
        raise UserError(
            f"There are {len(config.sources)} sources, {len(config.targets)} targets, "
            f"{len(config.dictionaries)} dictionaries, {len(tests)} test dictionaries and "
            f"{len(limits)} max_pairs: give one of each for every pair of spaces (the last two may "
            "be left out)."
        )
    return map(Files, *lists)


def _cases(
    data: BilingualData,
    max_pairs: int,
    config: ConfigDict,
    sizes: bilingual_data.Sizes,
    prefix: str,
    fields: dict[str, Any],
) -> list[Case]:
    """A case for each number of known pairs; all have the same words to translate."""
    source, target = jnp.asarray(data.source.vectors), jnp.asarray(data.target.vectors)
    counts = sorted({min(count, max_pairs) for count in config.num_pairs})

    def problem(random_seed: int, num_pairs: int) -> Problem:
        split = bilingual_data.split(data, counts[-1], random_seed, sizes)
        shown = (num_pairs, random_seed) == (counts[-1], config.random_seeds[0])
        return Problem(
            data=data,
            known=methods.Problem(
                source=source,
                target=target,
                pairs=jnp.asarray(split.train),
                num_pairs=num_pairs,
                key=jax.random.key(random_seed),
            ),
            queries=jnp.asarray(split.queries),
            translations=jnp.asarray(split.translations),
            shown_words=config.neighbour_words if shown else (),
        )

    num_items, dim = data.source.vectors.shape
    fields = fields | {"dataset": data.title, "source": data.names[0], "target": data.names[1]}
    fields |= {"proxy": data.proxy, "num_items": num_items, "dim": dim}
    return [
        Case(f"{prefix}-{n}", fields | {"num_pairs": n}, partial(problem, num_pairs=n))
        for n in counts
    ]
