"""Values of the config varied one at a time: MRR of each method on each pair of spaces."""

import dataclasses
from functools import lru_cache, partial
from pathlib import Path

from ml_collections import ConfigDict

from anchor_opt import runner, two_spaces
from anchor_opt.reports import ablation as report
from common.errors import UserError
from common.linear import preprocess, unit
from common.progress import progress_bar
from common.run import records, results
from common.run.results import Row
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs
from common.spaces.paired_spaces import PairedSpaces


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Each pair of spaces at each value of config.vary: tables, and ablation.png.

    With config.detail there are rows of each random run too, and of anchors that are items.
    """
    points, rows = list(runner.points_of(config)), []
    detail = config.get("detail", False)
    for text in config.pairs:
        names = space_pairs.names(text)
        load = lru_cache(maxsize=1)(partial(_load, names, cache))
        for point in progress_bar(points, desc=text, unit="value"):
            values = point.config
            data = load(values.drop_first, values.min_letters, values.max_rows)
            if values.num_words > len(data.names):
                if point.name == "num_words" and not point.base:
                    continue
                raise UserError(
                    f"'{names[0]}' and '{names[1]}' share {len(data.names)} items, fewer than "
                    f"num_words={values.num_words}: ask for at most that many."
                )
            normalise = preprocess if values.centre else unit
            pair = two_spaces.Pair.of(names, data.take(slice(values.num_words)), normalise)
            # The base is measured once, whichever name it is listed under.
            changed = "base" if point.base else f"{point.name}-{point.value}"
            fields = {"experiment": config.experiment}
            prefix = f"{space_pairs.file_name(*names)}-{changed}"
            grid = runner.grid(values)
            case = two_spaces.mrr_case(pair, grid, prefix, fields)
            evaluate = partial(two_spaces.evaluate_mrr, k=values.k, detail=detail)
            measured = runner.run([case], grid, evaluate, work, title=prefix)
            shown = results.averaged(measured.rows) + (measured.rows if detail else [])
            rows += [_at(row, point) for row in shown]
    return records.finish(work, rows, report)


def _load(
    names: tuple[str, str], cache: Path, drop_first: int, min_letters: int, max_rows: int
) -> PairedSpaces:
    options = {"drop_first": drop_first, "min_letters": min_letters, "max_rows": max_rows}
    return paired_spaces.load(*names, num_words=None, cache=cache, **options)


def _at(row: Row, point: runner.Point) -> Row:
    """The row with the varied value, which the base has once for each name."""
    labels = {**row.labels, "base": point.base}
    return dataclasses.replace(row, sweep_over=point.name, sweep_value=point.value, labels=labels)
