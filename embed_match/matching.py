"""Table 1: pairs of embeddings after the optimal rotation."""

from pathlib import Path

from ml_collections import ConfigDict

from common import cli, report
from common.errors import UserError
from common.workdir import Workdir, write_atomically, write_json
from embed_match import compare, embeddings, figures, paper, tables
from embed_match.compare import Transport


def match(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Distances, nearest neighbours and matching by transport of every pair.

    Args:
      config: of configs/embed_match/match.py.
      work: the run's folder.
      cache: the cache directory of data and trained embeddings.

    Returns:
      The table.

    Raises:
      UserError: values that do not fit, or data that can't be read.
    """
    pairs = [tuple(pair.split("-")) for pair in config.pairs]
    if wrong := [pair for pair in pairs if len(set(pair)) != 2]:
        raise UserError(f"The pair '{'-'.join(wrong[0])}' is not two names: give it as C1-C2.")
    cli.positive(config, "epsilon", "iterations", "tolerance")
    names = tuple(dict.fromkeys(name for pair in pairs for name in pair))
    embeddings.check(config, names)
    text = embeddings.read(config, cache)
    spaces = embeddings.load(config, text, work, cache, names)
    settings = Transport(config.epsilon, config.iterations, config.tolerance)
    measured, num_words = [], {}
    for a, b in pairs:

        def compute(a=a, b=b):
            x, y = compare.aligned(*embeddings.shared(spaces[a], spaces[b]))
            found = compare.distances(x, y) | compare.neighbours(x, y)
            return found | compare.matching(x, y, settings) | {"num_words": len(x)}

        found = work.part(f"match-{a}-{b}", compute)
        num_words[a, b] = found.pop("num_words")
        pair = {"source": a, "target": b, "random_seed": 0}
        measured += [pair | {"metric": metric, "value": value} for metric, value in found.items()]
    rows = [_row(row, config, num_words) for row in report.summarise(measured)]
    table = tables.with_speeds(tables.match(config, rows), config, spaces)
    write_json(work.path / "results.json", rows)
    write_atomically(work.path / "table.md", table.encode())
    report.save_figure(figures.match(rows), work.path / "match.png")
    return table


def _row(row: dict, config: ConfigDict, num_words: dict) -> dict:
    """A summarised row in the form of results.json."""
    pair = row["source"], row["target"]
    # The poster's numbers stand beside its text and vocabulary alone.
    same = (config.dataset, config.num_texts, config.num_words) == ("imdb", 25_000, 5_000)
    return row | {
        "experiment": config.experiment,
        "dataset": config.dataset,
        "method": "procrustes",
        "num_words": num_words[pair],
        "paper_value": paper.value(*pair, row["metric"]) if same else None,
        "standin": config.dataset != "imdb",
    }
