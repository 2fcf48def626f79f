"""The report of `isthmus migrate`, the verdict first."""

from pathlib import Path

from common.run.results import markdown, plus_minus
from isthmus.store.remapping import LENGTHS
from isthmus.store.result import Migration
from isthmus.store.strategies import Judgement

METHODS = {"procrustes": "orthogonal", "whitened_procrustes": "whitened", "ridge": "ridge"}
KEPT = """Each number is a share of the ten documents that the new model would find first if
everything were embedded again: the share that is also among the first 10, 50, 100 or 200 results of
another search. It is estimated from {basis}, for queries that are like the stored documents; ± is
about two standard errors. Where that was less than .05, between word and between sentence encoders,
the estimates were off by up to .06. If the new model puts these results in order, those of the ten
that are among them come first."""
JUDGED = """Searched are the {count} paired documents, each mapped by a map that was not fitted to
it. nDCG@10 is 1 if the relevant documents come first, less the lower they stand, and 0 if none is
among the first ten. Recall is the share of the relevant documents that are among the first 10 or
100. The difference is that of nDCG@10 to the old model, with a 95% interval (bootstrap over
queries)."""
LAZY = """The new model embeds candidates when they are asked for. Keep what it has embedded, so
that the store is embedded little by little, what is asked for most first."""


def verdict(migration: Migration) -> str:
    """What to do, in a sentence without its full stop."""
    strategy, count = migration.advice
    return {
        "old model": "Stay with the old model",
        "mapped store": "Map the store, and search it with the new model's queries",
        "old candidates": f"Let the old model find {count} candidates for each query, and the new "
        "model put them in order",
        "mapped candidates": f"Map the store, let it give {count} candidates for each query, and "
        "let the new model put them in order",
        "re-embedded": "Embed everything again",
    }[strategy]


def reasons(migration: Migration) -> str:
    """Why, and how sure that is."""
    strategy, count = migration.advice
    by_map, by_old = (
        {length: plus_minus(*kept[name]) for length, name in LENGTHS.items() if name in kept}
        for kept in migration.estimates
    )
    sentences = [
        "Of the ten documents that the new model would find if everything were embedded again, the "
        f"first ten of the old model hold {by_old[10]}, and those of the mapped store {by_map[10]}."
    ]
    by_list, search = (
        (by_old, "the old model") if strategy == "old candidates" else (by_map, "the mapped store")
    )
    if strategy == "re-embedded":
        longest = max(by_map)
        sentences.append(f"Even the first {longest} of the mapped store hold {by_map[longest]}.")
    elif count and count > 10:
        sentences.append(f"The first {count} of {search} hold {by_list[count]}.")
    if migration.judged:
        sentences.append(_quality(migration.judged, strategy, count, len(migration.choice.rows)))
    if migration.failed:
        sentences.append("The search for pairs has failed: do not use this, give more pairs.")
    elif not migration.certain:
        sentences.append("These shares are uncertain: give more pairs to know more.")
    return " ".join(sentences)


def _quality(judged: list[Judgement], strategy: str, count: int | None, documents: int) -> str:
    """The nDCG@10 of what is advised, beside the old model and the re-embedded store."""
    of = {(one.ranking.strategy, one.ranking.candidates): one for one in judged}
    again = of["re-embedded", None]
    sentence = (
        f"Judged by the given queries among {documents:,} documents, the old model has nDCG@10 "
        f"{plus_minus(of['old model', None].ndcg_10, None)}, and everything embedded again "
        f"{plus_minus(again.ndcg_10, None)} ({_difference(again)})"
    )
    if strategy in ("old model", "re-embedded"):
        return f"{sentence}."
    advised = of[strategy, count]
    return f"{sentence}; this has {plus_minus(advised.ndcg_10, None)} ({_difference(advised)})."


def _difference(one: Judgement) -> str:
    return f"{one.gain:+z.3f}, 95% interval {one.gain_low:+z.3f} to {one.gain_high:+z.3f}"


def text(migration: Migration, seconds: float, old: Path, folder: Path) -> str:
    """The report in Markdown.

    Args:
      migration: what it is about.
      seconds: that all of it took.
      old: the file of the store.
      folder: the folder of the results.
    """
    lists = {
        "the old model's queries in the old store": migration.estimates.by_old,
        "the new model's queries in the mapped store": migration.estimates.by_map,
    }
    kept = [[name, *(plus_minus(*share) for share in of.values())] for name, of in lists.items()]
    lengths = {name: f"first {length}" for length, name in LENGTHS.items()}
    header = ["Search", *(lengths[name] for name in migration.estimates.by_map)]
    basis = f"{len(migration.pairs):,} pairs of items that both models have embedded"
    if migration.search:
        basis = f"{len(migration.pairs):,} matches (probability {migration.search.probability:.2f} "
        basis += "that the search for them has succeeded)"
    parts = [
        f"# {verdict(migration)}",
        reasons(migration),
        f"## What is kept\n\n{KEPT.format(basis=basis)}\n\n{markdown(header, kept)}",
    ]
    if migration.judged:
        note = JUDGED.format(count=f"{len(migration.choice.rows):,}")
        parts.append(f"## Judged by the given queries\n\n{note}\n\n{_judged(migration.judged)}")
    parts.append(f"## How to do it\n\n{_steps(migration.advice.strategy, old, folder)}")
    tried = ", ".join(
        f"{METHODS[one.method]} {plus_minus(one.kept, None)}" for one in migration.choice.candidates
    )
    parts.append(
        f"## The map\n\n`map.npz` is {METHODS[migration.choice.best.method]}, the simplest kind "
        "that is as good as the best, or ridge from fewer pairs than dimensions. Share of the "
        "nearest documents that each kind keeps among pairs that it was not fitted to: "
        f"{tried}. In {seconds:.0f} s."
    )
    return "\n\n".join(parts) + "\n"


def _judged(judged: list[Judgement]) -> str:
    """The table of all strategies."""
    rows = []
    for one in judged:
        name = {"re-embedded": "everything embedded again"}.get(
            one.ranking.strategy, one.ranking.strategy
        )
        if one.ranking.candidates:
            name = f"{one.ranking.candidates} {name} in the new model's order"
        scores = (one.ndcg_10, one.recall_10, one.recall_100)
        difference = "" if name == "old model" else _difference(one).replace("95% interval ", "")
        rows.append([name, *(plus_minus(x, None) for x in scores), difference])
    return markdown(("Search", "nDCG@10", "Recall@10", "Recall@100", "Difference"), rows)


def _steps(strategy: str, old: Path, folder: Path) -> str:
    """What to do now, with the commands."""
    commands = (
        "The first command maps the store. The second normalises the new model's queries, without "
        "which the mapped store does not find what it holds:\n\n"
        f"    isthmus apply {old} --map={folder / 'map.npz'} --out=mapped{old.suffix}\n"
        f"    isthmus apply queries.npy --map={folder / 'map.npz'} --side=target --out=asked.npy"
    )
    return {
        "old model": "There is nothing to do.",
        "mapped store": commands,
        "old candidates": f"Search as you do today, for more results. {LAZY} No map is needed.",
        "mapped candidates": f"{commands}\n\n{LAZY}",
        "re-embedded": "Embed the texts of all documents by the new model. Until that is done, "
        "search as you do today.",
    }[strategy]
