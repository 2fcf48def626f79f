"""Tables and the figure of word alignment.

Labels of its rows: `retrieval` ('nn', 'csls' or 'inverted_softmax') and `split` ('test' or
'validation').
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxtyping import Array, Float
from matplotlib.figure import Figure

from common.run.figures import error_bars
from common.run.results import Row, markdown, pivot, plus_minus, select
from lpl import translation
from lpl.bilingual_data import BilingualData
from lpl.reports.gains import over

# P@1 in percent on the dictionaries of Dinu et al. (2014), by method and retrieval. All methods but
# the last two were trained on all 5,000 pairs.
LANGUAGES = ("EN-IT", "EN-DE", "EN-FI", "EN-ES")
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


def with_published(rows: Iterable[Row], data: BilingualData) -> list[Row]:
    """The rows, with the paper's number where it was measured on the same language pair.

    The language pair is known from the name of a dictionary of Dinu et al., as in en-it.train.txt
    or OPUS_en_it_europarl_train_5K.txt; the paper's numbers are of the most known pairs.
    """
    rows, name = list(rows), Path(data.names[2]).name.lower()
    language = re.search(r"en[-_](it|de|fi|es)(?![a-z])", name)
    if data.proxy or not language:
        return rows
    language = f"EN-{language[1].upper()}"
    largest = max(row.num_pairs for row in rows)
    shown = []
    for row in rows:
        percents = TABLE_1A.get((row.method, row.get("retrieval")))
        if percents and (row.metric, row.num_pairs) == ("p_at_1", largest):
            value = percents[LANGUAGES.index(language)] / 100
            dataset = f"Dinu et al. 2014, {language}"
            row = dataclasses.replace(row, paper_value=value, paper_dataset=dataset)
        shown.append(row)
    return shown


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


def table(rows: Sequence[Row], coverage: Iterable[Sequence[str]]) -> str:
    """Results, and the `coverage` of all data."""
    header = ("Data", "Part", "Pairs in both vocabularies", "Other pairs", "Source words covered")
    parts = tables(rows) | {"Dictionaries": markdown(header, coverage)}
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in parts.items())


def nearest_tables(nearest: Mapping[str, Mapping]) -> str:
    """Table 2 of the paper for each pair of spaces: title -> word -> its nearest words."""
    title = "### Nearest words, as in Table 2 (target words have a star)"
    return "\n\n".join(f"{title}: {name}\n\n{_nearest(words)}" for name, words in nearest.items())


def coverage(data: BilingualData) -> list[list[str]]:
    """Lines of a table: how much of each dictionary is in both vocabularies."""
    lines = []
    for part, lookup in (("dictionary", data.dictionary), ("test", data.test)):
        if lookup:
            covered = f"{lookup.num_covered_words:,} of {lookup.num_source_words:,}"
            counts = f"{len(lookup.pairs):,}", f"{lookup.num_missing:,}", covered
            lines.append([data.title, part, *counts])
    return lines


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> table: Table 1a of the paper, and two tables for each pair of spaces."""
    by_title = {}
    if not any(row.quick for row in rows):
        by_title["P@1 in the paper's Table 1a (dictionaries of Dinu et al. 2014)"] = _table_1a()
    for dataset in dict.fromkeys(row.dataset for row in rows):
        of_dataset = select(rows, dataset=dataset)
        largest = max(row.num_pairs for row in of_dataset)
        proxy = " (proxy data)" if of_dataset[0].proxy else ""
        split, runs = of_dataset[0].get("split"), of_dataset[0].num_runs
        by_title[
            f"{dataset}{proxy}: precision on the {split} words from {largest:,} known pairs, "
            f"mean ± std of {runs} random runs"
        ] = pivot(
            [row for row in select(of_dataset, num_pairs=largest) if row.metric in CUTS],
            lines=LINES,
            paper=True,
        )
        by_title[f"{dataset}{proxy}: P@1 by number of known pairs"] = pivot(
            select(of_dataset, metric="p_at_1"), lines=LINES, columns="num_pairs"
        )
    if rows_of_gains := select(rows, metric="gain"):
        by_title["Gain in P@1 by LPL over MSE, paired by random run, by number of known pairs"] = (
            pivot(
                rows_of_gains,
                lines={"dataset": "Data", "retrieval": "Retrieval"},
                columns="num_pairs",
            )
        )
    return by_title


def figures(rows: Sequence[Row]) -> dict[str, Figure]:
    """P@1 over the number of known pairs, MSE against LPL by the same retrieval, and the gain.

    None if the run has neither of the two methods.
    """
    panels: dict[str, dict[str, list]] = {}
    for metric, title in (("p_at_1", "P@1\n{}"), ("gain", "gain in P@1 by LPL\n{}")):
        for row in select(rows, metric=metric):
            if row.method in COMPARED:
                compared = "difference" if metric == "gain" else COMPARED[row.method]
                lines = panels.setdefault(title.format(row.dataset), {})
                point = row.num_pairs, row.mean, row.std
                retrieval = RETRIEVALS[row.get("retrieval")]
                lines.setdefault(f"{compared}, {retrieval}", []).append(point)
    if not panels:
        return {}
    return {
        "word_alignment": error_bars(panels, "known pairs", "Word translation with and without LPL")
    }


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
