"""Cross-lingual word alignment: Tables 1a and 2, and the same over fewer pairs."""

from pathlib import Path

import jax
import jax.numpy as jnp
from ml_collections import ConfigDict

from common import cli, report
from common.workdir import Workdir, write_atomically, write_json
from lpl import cases, figures, methods, paper, tables, translation
from lpl.cases import Case
from lpl.methods import METHODS, Problem

SHOWN = "lpa_mse"  # whose neighbour tables are made


def word_alignment(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Every method on every pair of spaces and number of training pairs.

    Args:
      config: of configs/lpl/word_alignment.py.
      work: the run's folder.
      cache: the cache directory of data.

    Returns:
      The tables for the terminal.

    Raises:
      UserError: values that do not fit, or data that can't be read.
    """
    _check(config)
    rows, near, coverage = [], {}, []
    for number, case in enumerate(cases.load(config, cache), 1):
        coverage.append(_coverage(case))
        measured = []
        for random_seed in config.random_seeds:
            measured += _measure(case, number, config, work, random_seed, near)
        rows += [_row(row, case, config) for row in report.summarise(measured)]
    table = tables.word_alignment(config, rows, coverage, near)
    write_json(work.path / "results.json", rows)
    write_atomically(work.path / "table.md", table.encode())
    figures.word_alignment(config, rows, work.path)
    return table


def _measure(
    case: Case, number: int, config: ConfigDict, work: Workdir, random_seed: int, near: dict
) -> list[dict]:
    """All methods and sizes of one random seed; the first one's neighbour tables go to `near`."""
    pairs, queries, gold = cases.split(case, config, random_seed)
    queries, gold = jnp.asarray(queries), jnp.asarray(gold)
    source, target = map(jnp.asarray, case.vectors)
    measured = []
    for size in config.sizes:
        problem = Problem(source, target, jnp.asarray(pairs), size, jax.random.key(random_seed))
        for method in config.methods:
            spaces = "-".join(Path(name).name for name in case.names)
            part = f"{number}-{spaces}-{method}-{size}-seed{random_seed}"
            wants_words = (method, size, random_seed) == (
                SHOWN,
                max(config.sizes),
                config.random_seeds[0],
            )

            def compute(problem=problem, method=method, part=part, wants_words=wants_words):
                common = METHODS[method](problem, config[method], work, part)
                values = [
                    {"retrieval": name, "metric": metric, "value": value}
                    for name in config[method].retrieval
                    for metric, value in translation.precision(
                        *common, queries, gold, name, config
                    ).items()
                ]
                return [values, _words(case, common, config) if wants_words else {}]

            values, words = work.part(part, compute)
            if words:
                near[case.title] = words
            shared = {"method": method, "num_pairs": size, "random_seed": random_seed}
            measured += [shared | value for value in values]
    return measured


def _words(case: Case, common, config: ConfigDict) -> dict[str, dict]:
    """Neighbour tables of the chosen words that the dictionary has."""
    row_of = {word: row for row, word in enumerate(case.words[0])}
    translations = dict(reversed(case.known.pairs.tolist()))  # the first of a word is its best
    found = {}
    for word in config.neighbour_words:
        if row_of.get(word) in translations:
            row = row_of[word]
            other = translations[row]
            lists = translation.surroundings(*common, row, other, case.words, config.num_neighbours)
            found[word] = {"translation": case.words[1][other]} | lists
    return found


def _check(config: ConfigDict) -> None:
    for method in config.methods:
        cli.choose(METHODS, method, "method")
        methods.check(config, method)
        known = f"some of {', '.join(translation.RETRIEVALS)}"
        cli.require(config, translation.RETRIEVALS.__contains__, known, f"{method}.retrieval")
    cli.choose(dict.fromkeys(("test", "validation")), config.split, "split")
    cli.positive(config, "sizes", "max_rows", "num_validation", "num_test", "neighbours")
    cli.positive(config, "inverse_temperature", "hubness_words", "num_neighbours")


def _coverage(case: Case) -> dict:
    """What the dictionaries have of the vocabularies, for the table."""
    return {
        "title": case.title,
        "dictionaries": [
            {
                "name": Path(name).name,
                "pairs": len(found.pairs),
                "missing": found.missing,
                "source_words": found.source_words,
                "covered_words": found.covered_words,
            }
            for name, found in ((case.dictionary, case.known), ("test", case.test))
            if found
        ],
    }


def _row(row: dict, case: Case, config: ConfigDict) -> dict:
    """A summarised row in the form of results.json."""
    published = paper.value(row["method"], row["retrieval"])
    wanted = row["metric"] == "p_at_1" and row["num_pairs"] == max(config.sizes)
    return row | {
        "experiment": config.experiment,
        "dataset": case.title,
        "source": case.names[0],
        "target": case.names[1],
        "split": config.split,
        "paper_value": published["EN-IT"] / 100 if published and wanted else None,
        "paper_dataset": "Dinu et al. 2014, EN-IT" if published and wanted else None,
        "standin": case.standin,
        "num_words": len(case.words[0]),
        "dim": case.vectors[0].shape[1],
    }
