"""The tables of word alignment, the paper's numbers beside ours, never in one column."""

from ml_collections import ConfigDict

from common.report import markdown, measured
from lpl import paper

CUTS = ("p_at_1", "p_at_5", "p_at_10")


def word_alignment(
    config: ConfigDict, rows: list[dict], coverage: list[dict], near: dict[str, dict]
) -> str:
    """table.md: methods as Table 1a, their P@1 over numbers of pairs, neighbours as Table 2.

    Args:
      config: of the experiment.
      rows: of results.json.
      coverage: of each pair of spaces.
      near: pair of spaces -> word -> its neighbours.
    """
    text = [published()]
    for data in coverage:
        mine = [row for row in rows if row["dataset"] == data["title"]]
        text += [
            f"## {data['title']}{' (stand-ins)' if mine[0]['standin'] else ''}",
            f"{_covered(data)} Words of the {config.split} part, at most {config.num_test:,}; mean "
            f"± std over {len(config.random_seeds)} random seeds.",
            ours(config, mine),
        ]
        if data["title"] in near:
            text += ["Neighbours, as Table 2 (a star marks target words):", _near(near, data)]
    return "\n\n".join(text) + "\n"


def ours(config: ConfigDict, rows: list[dict]) -> str:
    """Our tables of one pair of spaces, from its rows of results.json."""
    largest = [row for row in rows if row["num_pairs"] == max(config.sizes)]
    return "\n\n".join(
        [
            f"From {max(config.sizes):,} pairs, as Table 1a:",
            _lines(largest),
            "P@1 over the number of training pairs:",
            _over_sizes(config, rows),
        ]
    )


def published() -> str:
    """The paper's Table 1a, the row that can't be right marked."""
    lines, notes = [], []
    for (method, retrieval), row in paper.TABLE_1A.items():
        doubt = paper.DOUBTFUL.get((method, retrieval))
        mark = " [1]" if doubt else ""
        lines.append([f"{method}{mark}", retrieval, *(f"{x / 100:.3f}"[1:] for x in row)])
        notes += [f"[1] {doubt[0].upper()}{doubt[1:]}."] if doubt else []
    header = ("Method", "Retrieval", *(f"Paper: {name}" for name in paper.LANGUAGES))
    return "\n\n".join(
        [
            "## The paper's Table 1a\n\nP@1 on the dictionaries of Dinu et al. (2014), which are "
            "in no package. Ours, below, are other words and other vectors: not to be compared "
            "number by number.",
            markdown(header, lines),
            *notes,
        ]
    )


def _covered(data: dict) -> str:
    found = [
        f"'{part['name']}' has {part['pairs']:,} pairs in both vocabularies "
        f"({part['missing']:,} out of vocabulary, left out), "
        f"{part['covered_words']:,} of its {part['source_words']:,} source words."
        for part in data["dictionaries"]
    ]
    return "Dictionary " + " ".join(found)


def _lines(rows: list[dict]) -> str:
    methods = {}
    for row in rows:
        methods.setdefault((row["method"], row["retrieval"]), {})[row["metric"]] = row
    cells = [
        [method, retrieval, *(measured(found[m]) for m in CUTS)]
        for (method, retrieval), found in methods.items()
    ]
    return markdown(("Method", "Retrieval", "P@1", "P@5", "P@10"), cells)


def _over_sizes(config: ConfigDict, rows: list[dict]) -> str:
    methods = {}
    for row in rows:
        if row["metric"] == "p_at_1":
            key = row["method"], row["retrieval"]
            methods.setdefault(key, []).append(measured(row))
    header = ("Method", "Retrieval", *(f"{size:,} pairs" for size in config.sizes))
    return markdown(header, [[*key, *values] for key, values in methods.items()])


def _near(near: dict[str, dict], data: dict) -> str:
    cells = []
    for word, found in near[data["title"]].items():
        for name, label in (
            ("source", word),
            ("target", found["translation"]),
            ("aligned", f"{word}, both"),
        ):
            cells.append([label, ", ".join(found[name])])
    return markdown(("Word", "Nearest"), cells)
