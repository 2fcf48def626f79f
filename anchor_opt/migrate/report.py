"""The report of `isthmus migrate`, the verdict first."""

from anchor_opt.migrate import Migration
from common.remapping import LENGTHS
from common.run.results import markdown, plus_minus

NAMES = {"recall_10": "the ten nearest"} | {
    name: f"the ten within {length}" for length, name in LENGTHS.items() if name != "recall_10"
}
WORDS = """## What the words mean

- **kept**: the share of the ten documents nearest to a query in a store that is embedded again by
  the new model which are also among the first 10, 50, 100 or 200 of this list, ± about two standard
  errors. It is estimated from the pairs, for queries that are like the stored documents.
- **candidates in the new model's order**: the first documents of a list are embedded by the new
  model when they are asked for, and sorted by its similarity. What the new model has embedded is
  kept, so that the store is embedded little by little (lazy migration).
- **mapped store**: old vectors, multiplied by a matrix that was fitted to the pairs.
- **nDCG@10**: 1 if the relevant documents come first, less the lower they stand, 0 if none is among
  the first ten.
"""


def verdict(migration: Migration) -> str:
    """What to do, in two or three sentences."""
    strategy, count = migration.advice
    by_map, by_old = migration.estimates
    ways = {
        "old model": "Stay with the old model",
        "mapped store": "Map the store, and search it with normalised queries of the new model",
        "old candidates": f"Keep the old vectors: let the old model find {count} candidates for "
        "each query, and the new model put them in order",
        "mapped candidates": f"Map the store: let it give {count} candidates for each query, and "
        "the new model put them in order",
        "re-embedded": "Embed everything again",
    }
    by_list = by_old if strategy.startswith("old") else by_map
    length = count or (200 if strategy == "re-embedded" else 10)
    kept = by_list.get(LENGTHS[length]) or list(by_list.values())[-1]
    share = f"{plus_minus(*kept)} of the ten documents that the new model would find"
    why = {
        "old model": f"its own lists of ten have {share}, were everything embedded again",
        "re-embedded": f"even 200 candidates of the mapped store hold only {share}",
    }.get(strategy, f"this keeps {share}, were everything embedded again")
    if strategy == "old model" and migration.judged:
        again = _gain(migration, "re-embedded")
        why = f"embedding everything again changes nDCG@10 by {again}"
    sentences = [f"{ways[strategy]}: {why}."]
    if strategy not in ("old model", "mapped store"):
        sentences.append(
            f"The old model alone keeps {plus_minus(*by_old['recall_10'])} of them, the mapped "
            f"store alone {plus_minus(*by_map['recall_10'])}."
        )
    if migration.matched is not None and migration.matched.failed:
        sentences.append("The search for pairs has failed: do not use this, give more pairs.")
    elif not migration.certain:
        sentences.append("These shares are uncertain: more pairs would say more.")
    return " ".join(sentences)


def _gain(migration: Migration, strategy: str) -> str:
    one = next(x for x in migration.judged or [] if x.ranking.strategy == strategy)
    return f"{one.gain:+.3f} (95% interval {one.gain_low:+.3f} to {one.gain_high:+.3f})"


def text(migration: Migration, num_old: int, seconds: float) -> str:
    """The report in Markdown."""
    lists = {
        "the old model, its queries in its store": migration.estimates.by_old,
        "the mapped store, queries of the new model": migration.estimates.by_map,
    }
    kept = [[name, *(plus_minus(*e) for e in of.values())] for name, of in lists.items()]
    header = ["List", *(NAMES[name] for name in migration.estimates.by_map)]
    if migration.matched is None:
        basis = f"{len(migration.pairs):,} pairs of items that both models have embedded"
    else:
        basis = (
            f"{len(migration.pairs):,} matches that were sought, right with probability "
            f"{migration.matched.probability:.2f}"
        )
    maps = ", ".join(f"{one.method} {one.kept:.3f}" for one in migration.choice.candidates)
    parts = [
        f"# What to do with {num_old:,} old vectors\n\n**{verdict(migration)}**",
        f"## What is kept\n\nFrom {basis}, in {seconds:.0f} s.\n\n{markdown(header, kept)}",
    ]
    if migration.judged:
        parts.append(f"## Judged by the given queries\n\n{judged(migration)}")
    parts.append(
        "## The map\n\n"
        f"`map.npz` is the {migration.choice.best.method} map, which keeps the nearest documents "
        f"of pairs that it was not fitted to best, or as well and is simpler ({maps}).\n\n"
        "    isthmus apply old.npy --map=map.npz --out=mapped.npy          # the store\n"
        "    isthmus apply queries.npy --map=map.npz --side=target --out=q.npy  # to search it with"
    )
    return "\n\n".join([*parts, WORDS])


def judged(migration: Migration) -> str:
    """The table of all strategies, among the paired documents."""
    rows = []
    for one in migration.judged or []:
        ranking = one.ranking
        name = ranking.strategy
        if ranking.candidates:
            name = f"{ranking.candidates} {name} in the new model's order"
        interval = f"{one.gain_low:+.3f} to {one.gain_high:+.3f}"
        scores = (one.ndcg_10, one.recall_10, one.recall_100)
        rows.append([name, *(plus_minus(x, None) for x in scores), f"{one.gain:+.3f}", interval])
    note = "Documents are the pairs that the map was not fitted to."
    header = ("Strategy", "nDCG@10", "Recall@10", "Recall@100", "Gain", "95% interval")
    return f"{note}\n\n{markdown(header, rows)}"
