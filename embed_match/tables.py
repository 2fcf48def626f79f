"""The tables of the experiments, the poster's numbers beside ours, never in one column."""

import numpy as np
from ml_collections import ConfigDict

from common.report import markdown, measured, plus_minus
from embed_match import paper
from embed_match.embeddings import Embedding


def match(config: ConfigDict, rows: list[dict]) -> str:
    """Table 1 from the rows of results.json: ours and the poster's in columns of their own."""
    pairs = {}
    for row in rows:
        pairs.setdefault((row["source"], row["target"]), {})[row["metric"]] = row
    header = ["Pair", "Words"]
    for label in paper.METRICS.values():
        header += [label, "poster"]
    header += ["Transport, entropic", "Seconds, exact", "entropic"]
    cells = []
    for (a, b), found in pairs.items():
        line = [f"{a} - {b}", f"{found['l2']['num_words']:,}"]
        for metric in paper.METRICS:
            published = found[metric]["paper_value"]
            line += [_number(found[metric]["mean"]), _number(published)]
        converged = found["ot_entropic_error"]["mean"] <= config.tolerance
        line.append(_number(found["ot_entropic"]["mean"]) + ("" if converged else " [1]"))
        line += [f"{found[m]['mean']:.1f}" for m in ("ot_seconds", "ot_entropic_seconds")]
        cells.append(line)
    return (
        f"## Pairs of embeddings after the optimal rotation (Table 1)\n\n{trained_on(config)} "
        "Unit rows. Accuracy: how often a word of the first is matched with itself in the second. "
        "Pretrained spaces are compared on the words they share. The poster states neither "
        "dimensions, windows, epochs nor the normalisation: a row of its numbers beside ours is a "
        f"comparison of outcomes.\n\n{markdown(header, cells)}\n\n[1] Not converged: after "
        f"{config.iterations} iterations the plan's marginals are off by more than "
        f"{config.tolerance:g}.\n"
    )


def correlate(config: ConfigDict, rows: list[dict]) -> str:
    """Figure 5 in numbers, from the rows of results.json: correlation, accuracies, all pairs."""
    found = {(row["dataset"], row["method"]): row for row in rows}
    apart = {(r["source"], r["target"]): r["mean"] for r in rows if r["metric"] == "l2"}
    overall = [
        [task, str(len(apart)), _number(row["mean"], 2), _interval(row)]
        for task in config.tasks
        for row in (found[task, "all pairs"],)
    ]
    accuracies = [
        [name, *(measured(found[task, name]) for task in config.tasks)]
        for name in config.embeddings
    ]
    of_pairs = []
    for (a, b), l2 in apart.items():
        differences = [
            abs(found[task, a]["mean"] - found[task, b]["mean"]) for task in config.tasks
        ]
        of_pairs.append([f"{a}-{b}", _number(l2), *map(_number, differences)])
    return (
        "## Similarity and downstream performance (Figure 5)\n\n"
        f"{trained_on(config)} Spearman's correlation of a pair's mean l2 distance after rotation "
        "with its difference of accuracy; the interval (95%) is from resampled embeddings. The "
        "poster prints a scatter and no number, and calls it inconclusive.\n\n"
        f"{markdown(('Task', 'Pairs', 'Spearman', 'Interval'), overall)}\n\n"
        f"{downstream(config)}\n\n"
        f"{markdown(('Embedding', *config.tasks), accuracies)}\n\n"
        f"{markdown(('Pair', 'l2', *(f'Difference, {t}' for t in config.tasks)), of_pairs)}\n"
    )


def ensemble(config: ConfigDict, rows: list[dict]) -> str:
    """Figure 6 in numbers, from the rows of results.json: gains over the mean of the members."""
    parts = [
        "## Ensembles of pairs (Figure 6)",
        f"{trained_on(config)} {downstream(config)} Gain: accuracy above the mean of the two "
        "members. The poster prints bars and no numbers: every ensemble gains in it.",
    ]
    for task in config.tasks:
        mine = [row for row in rows if row["dataset"] == task]
        members = [[r["source"], measured(r)] for r in mine if r["method"] == "member"]
        pairs = {}
        for row in mine:
            if row["metric"] == "gain":
                pairs.setdefault((row["source"], row["target"]), {})[row["method"]] = row
        ways = list(next(iter(pairs.values())))
        gains = [
            ["-".join(pair), *(measured(found[way], 4) for way in ways)]
            for pair, found in pairs.items()
        ]
        means = {way: np.mean([found[way]["mean"] for found in pairs.values()]) for way in ways}
        gains.append(["mean of pairs", *(_number(means[way], 4) for way in ways)])
        above = {way: sum(found[way]["mean"] > 0 for found in pairs.values()) for way in ways}
        gains.append(["pairs that gain", *(f"{above[way]} of {len(pairs)}" for way in ways)])
        parts += [
            f"### {task}",
            markdown(("Embedding", "Accuracy"), members),
            markdown(("Pair", *(f"Gain, {way}" for way in ways)), gains),
        ]
    return "\n\n".join(parts) + "\n"


def downstream(config: ConfigDict) -> str:
    """How accuracy is measured."""
    news = " News are BBC headlines, a stand-in." if "news" in config.tasks else ""
    return (
        "Texts are means of unit word vectors, classified by logistic regression; mean ± std over "
        f"{len(config.random_seeds)} random seeds of the texts trained and tested on."
        f"{news}"
    )


def trained_on(config: ConfigDict) -> str:
    """What all trained embeddings saw."""
    standin = "" if config.dataset == "imdb" else " (a stand-in for IMDB)"
    return (
        f"Trained on {config.num_texts:,} texts of {config.dataset}{standin}, vocabulary "
        f"{config.num_words:,}."
    )


def with_speeds(table: str, config: ConfigDict, spaces: dict[str, Embedding]) -> str:
    """table.md: a table, and the words a second in the training of each embedding."""
    cells = []
    for name, space in spaces.items():
        if name in config.models:
            known = not np.isnan(space.words_per_second)
            speed = f"{space.words_per_second:,.0f}" if known else "- (resumed)"
            cells.append([name, config.models[name].kind, str(space.vectors.shape[1]), speed])
    header = ("Embedding", "Model", "Numbers a word", "Words/s in training")
    return f"{table}\n{markdown(header, cells)}\n"


def _number(value: float | None, digits: int = 3) -> str:
    return plus_minus(value, None, digits)


def _interval(row: dict) -> str:
    return " to ".join(_number(row[end], 2) for end in ("low", "high"))
