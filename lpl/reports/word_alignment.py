"""Tables and the figure of word alignment.

Labels of its rows: `retrieval` ('nn', 'csls' or 'inverted_softmax') and `split` ('test' or
'validation').
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from jaxtyping import Array, Float
from matplotlib.figure import Figure

from common.run.figures import error_bars
from common.run.records import Record
from common.run.results import Published, Row, frame, markdown, pivot, plus_minus, points, select
from lpl import translation
from lpl.bilingual_data import BilingualData
from lpl.reports.gains import over

# P@1 in percent on the dictionaries of Dinu et al. (2014), by method and retrieval. All methods but
# the last two were trained on all 5,000 pairs.
LANGUAGES = ("EN-IT", "EN-DE", "EN-FI", "EN-ES")
SPACES = {"italian": "EN-IT", "german": "EN-DE", "finnish": "EN-FI", "spanish": "EN-ES"}
TABLE_1A = {
    ("shigeto_2015", "nn"): (41.53, 43.07, 31.04, 33.73),
    ("artetxe_2016", "nn"): (39.27, 41.87, 30.62, 31.40),
    ("smith_2017", "inverted_softmax"): (41.53, 43.07, 31.04, 33.73),
    ("artetxe_2018", "nn"): (44.00, 44.27, 32.94, 36.53),
    ("artetxe_2018", "inverted_softmax"): (45.27, 44.13, 32.94, 36.60),
    ("mse_sgd", "nn"): (39.67, 45.47, 29.42, 35.3),
    ("lpa_mse", "csls"): (43.33, 46.07, 33.50, 35.13),
}
LINES = {"method": "Method", "retrieval": "Retrieval"}
CUTS = {"p_at_1", "p_at_5", "p_at_10"}
COMPARED = {"mse_sgd": "MSE", "lpa_mse": "MSE + LPL"}
RETRIEVALS = {"nn": "nearest neighbour", "csls": "CSLS", "inverted_softmax": "inverted softmax"}


def published(row: Row, config: Mapping[str, Any]) -> Published | None:
    """The paper's number of the same pair of languages, from the most known pairs.

    The languages are known from a target space of one language, or from the name of a dictionary of
    Dinu et al., as in en-it.train.txt or OPUS_en_it_europarl_train_5K.txt. The gain is that of the
    paper's two rows, of which MSE has nearest neighbours and MSE + LPL has CSLS.
    """
    dictionary = row.dataset.rpartition(", ")[2].lower()
    found = re.search(r"en[-_](it|de|fi|es)(?![a-z])", dictionary)
    name = SPACES.get(row.target or "") or (f"EN-{found[1].upper()}" if found else None)
    most = max(config["num_pairs"])
    limits = (most, *(min(most, limit) for limit in config["max_pairs"]))
    if not name or row.num_pairs not in limits:
        return None
    place, last = LANGUAGES.index(name), ("lpa_mse", "csls")
    value = TABLE_1A.get((row.method, row.get("retrieval")), (None,) * 4)[place]
    if row.metric == "gain":
        same = (row.method, row.get("retrieval")) == last
        value = TABLE_1A[last][place] - TABLE_1A["mse_sgd", "nn"][place] if same else None
    if value is None or row.metric not in ("p_at_1", "gain"):
        return None
    return Published(value / 100, dataset=f"Dinu et al. 2014, {name}")


def gains(rows: Sequence[Row]) -> list[Row]:
    """P@1 with LPL minus P@1 without, of the same random run, number of pairs and retrieval."""
    differences = over("mse_sgd", select(rows, metric="p_at_1"))
    return [
        dataclasses.replace(row, metric="gain") for row in select(differences, method="lpa_mse")
    ]


def nearest_words(
    data: BilingualData,
    source: Float[Array, "n r"],
    target: Float[Array, "m r"],
    words: Sequence[str],
    count: int,
) -> dict[str, dict[str, Any]]:
    """Word -> its translation and its `translation.nearest_words`, for words in the dictionary.

    Args:
      data: words of both spaces and the dictionary.
      source: the source space in common coordinates.
      target: the target space in common coordinates.
      words: source words.
      count: number of nearest words.
    """
    row_of = {word: row for row, word in enumerate(data.source.words)}
    # The first translation of a word is its best one: in reverse order, it is set last.
    translations = dict(reversed(data.dictionary.pairs.tolist()))
    vocabularies, nearest = (data.source.words, data.target.words), {}
    for word in words:
        if (row := row_of.get(word)) in translations:
            pair = row, translations[row]
            near = translation.nearest_words(source, target, pair, vocabularies, count)
            nearest[word] = near | {"translation": data.target.words[pair[1]]}
    return nearest


def quoted(coverage: Iterable[Sequence[str]], nearest: Mapping[str, Mapping]) -> dict[str, str]:
    """The `coverage` of all data, and Table 2 of the paper for each pair of spaces.

    Args:
      coverage: lines of the table.
      nearest: title of a pair of spaces -> word -> its nearest words.
    """
    header = ("Data", "Part", "Pairs in both vocabularies", "Other pairs", "Source words covered")
    title = "Nearest words, as in Table 2 (target words have a star)"
    tables = {f"{title}: {name}": _nearest(words) for name, words in nearest.items()}
    return {"Dictionaries": markdown(header, coverage)} | tables


def coverage(data: BilingualData) -> list[list[str]]:
    """Lines of a table: how much of each dictionary is in both vocabularies."""
    lines = []
    for part, lookup in (("dictionary", data.dictionary), ("test", data.test)):
        if lookup:
            covered = f"{lookup.num_covered_words:,} of {lookup.num_source_words:,}"
            counts = f"{len(lookup.pairs):,}", f"{lookup.num_missing:,}", covered
            lines.append([data.title, part, *counts])
    return lines


def tables(record: Record) -> dict[str, str]:
    """Title -> table: Table 1a of the paper, and two tables for each pair of spaces."""
    rows = frame(record.rows)
    by_title = {}
    if not rows.quick.any():
        by_title["P@1 in the paper's Table 1a (dictionaries of Dinu et al. 2014)"] = _table_1a()
    for dataset, part in rows.groupby("dataset", sort=False):
        first, largest = part.row.iloc[0], part.num_pairs.max()
        proxy = " (proxy data)" if first.proxy else ""
        by_title[
            f"{dataset}{proxy}: precision on the {first.get('split')} words from {largest:,} known "
            f"pairs, mean ± std of {first.num_runs} random runs"
        ] = pivot(
            part[(part.num_pairs == largest) & part.metric.isin(CUTS)],
            lines=LINES,
            published=partial(published, config=record.config),
        )
        by_title[f"{dataset}{proxy}: P@1 by number of known pairs"] = pivot(
            part[part.metric == "p_at_1"], lines=LINES, columns="num_pairs"
        )
    gained, lines = rows[rows.metric == "gain"], {"dataset": "Data", "retrieval": "Retrieval"}
    if len(gained):
        title = "Gain in P@1 by LPL over MSE, paired by random run, by number of known pairs"
        by_title[title] = pivot(gained, lines=lines, columns="num_pairs")
    return by_title


def figures(record: Record) -> dict[str, Figure]:
    """P@1 over the number of known pairs, MSE against LPL by the same retrieval, and the gain.

    None if the run has neither of the two methods.
    """
    rows = frame(record.rows)
    rows = rows[rows.method.isin(COMPARED) & rows.metric.isin(["p_at_1", "gain"])]
    compared = rows.method.map(COMPARED).where(rows.metric != "gain", "difference")
    rows = rows.assign(line=compared + ", " + rows.retrieval.map(RETRIEVALS))
    panels = {
        title.format(dataset): points(part, "line", "num_pairs")
        for metric, title in (("p_at_1", "P@1\n{}"), ("gain", "gain in P@1 by LPL\n{}"))
        for dataset, part in rows[rows.metric == metric].groupby("dataset", sort=False)
    }
    if not panels:
        return {}
    title = f"Word translation with and without LPL: mean ± std of {rows.num_runs.max()} runs"
    return {"word_alignment": error_bars(panels, "known pairs", title)}


def _table_1a() -> str:
    header = (*LINES.values(), *(f"Paper: {name}" for name in LANGUAGES))
    shown = {key: [plus_minus(x / 100, None) for x in row] for key, row in TABLE_1A.items()}
    return markdown(header, [[*key, *row] for key, row in shown.items()]) + (
        "\n\nThe paper's row of Smith 2017 repeats that of Shigeto 2015 in all four columns; other "
        "publications give 43.1 to 44.5 / 43.33 / 29.42 / 35.13."
    )


def _nearest(words: Mapping[str, Mapping]) -> str:
    lines = []
    for word, nearest in words.items():
        lines.append([word, ", ".join(nearest["source"])])
        lines.append([nearest["translation"], ", ".join(nearest["target"])])
        lines.append([f"{word}, both", ", ".join(nearest["both"])])
    return markdown(("Word", "Nearest"), lines)
