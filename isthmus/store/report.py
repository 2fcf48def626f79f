"""The report of `isthmus migrate`, the verdict first."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from common.data.readers.vector_files import STRICT, Form
from common.run.figures import error_bars, styles
from common.run.results import markdown, plus_minus
from isthmus.align.files import apply_commands
from isthmus.pages import filled
from isthmus.store.estimate import Estimate
from isthmus.store.migration import Migration
from isthmus.store.remapping import length_of
from isthmus.store.strategies import Judgement

NUM_SHOWN = 20  # suspicious pairs
METHODS = {"procrustes": "orthogonal", "whitened_procrustes": "whitened", "ridge": "ridge"}
VERDICTS = {
    "old model": "Stay with the old model",
    "mapped store": "Map the store, and search it with the new model's queries",
    "old candidates": "Let the old model find {count} candidates for each query, and the new "
    "model put them in order",
    "mapped candidates": "Map the store, let it give {count} candidates for each query, and let "
    "the new model put them in order",
    "re-embedded": "Embed everything again",
}
LAZY = """The new model embeds candidates when they are asked for. Keep what it has embedded, so
that the store is embedded little by little, what is asked for most first."""
COMMANDS = """The first command maps the store. The second normalises the new model's queries,
without which the mapped store does not find what it holds:

"""
STEPS = {  # what to do now
    "old model": "There is nothing to do.",
    "mapped store": "{commands}",
    "old candidates": f"Search as you do today, for more results. {LAZY} No map is needed.",
    "mapped candidates": f"{{commands}}\n\n{LAZY}",
    "re-embedded": "Embed the texts of all documents by the new model. Until that is done, search "
    "as you do today.",
}


def verdict(migration: Migration) -> str:
    """What to do, in a sentence without its full stop, and what makes it uncertain."""
    strategy, count = migration.advice
    sentence = VERDICTS[strategy].format(count=count)
    if not migration.doubts:
        return sentence
    doubts = "; ".join(migration.doubts)
    return f"Not certain, since {doubts}: {sentence[0].lower()}{sentence[1:]}"


def reasons(migration: Migration) -> str:
    """Why, and how sure that is."""
    strategy, count = migration.advice
    by_map, by_old = (_shares(kept) for kept in migration.estimates)
    sentences = [
        "Of the ten documents that the new model would find if everything were embedded again, the "
        f"first ten of the old model hold {by_old[10]}, and those of the mapped store {by_map[10]}."
    ]
    if strategy == "re-embedded":
        longest = max(by_map)
        sentences.append(f"Even the first {longest} of the mapped store hold {by_map[longest]}.")
    elif count and count > 10:
        of_old = strategy == "old candidates"
        name, shares = ("old model", by_old) if of_old else ("mapped store", by_map)
        sentences.append(f"The first {count} of the {name} hold {shares[count]}.")
    if migration.duplicates:
        sentences.append(
            f"{migration.duplicates:,} pairs are near-duplicates of others and are left out."
        )
    if migration.judged:
        sentences.append(_quality(migration.judged, strategy, count, len(migration.choice.rows)))
    if migration.note:
        sentences.append(f"{migration.note[0].upper()}{migration.note[1:]}.")
    if migration.failed:
        sentences.append(
            "The search for pairs has failed: do not use this, embed some items by both models and "
            "give them as --pairs."
        )
    elif not migration.certain:
        more = "random items of the store as pairs" if migration.doubts else "more pairs"
        sentences.append(f"These shares are uncertain: give {more} to know more.")
    return " ".join(sentences)


def _quality(judged: list[Judgement], strategy: str, count: int | None, documents: int) -> str:
    """The nDCG@10 of what is advised, beside the old model and the re-embedded store."""
    of = {one.ranking[:2]: one for one in judged}

    def shown(*way):
        ndcg = plus_minus(of[way].ndcg_10, None)
        return ndcg if way == ("old model", None) else f"{ndcg} ({_difference(of[way])})"

    sentence = (
        f"Judged by the given queries among {documents:,} documents, the old model has nDCG@10 "
        f"{shown('old model', None)}, and everything embedded again {shown('re-embedded', None)}"
    )
    if strategy in ("old model", "re-embedded"):
        return f"{sentence}."
    return f"{sentence}; this has {shown(strategy, count)}."


def _difference(one: Judgement) -> str:
    return f"{one.gain:+z.3f}, 95% interval {one.gain_low:+z.3f} to {one.gain_high:+z.3f}"


def _shares(kept: dict[str, Estimate]) -> dict[int, str]:
    """The shares with their uncertainty, by the lengths of lists."""
    return {length_of(name): plus_minus(*share) for name, share in kept.items()}


def _ways(migration: Migration, seconds_per_text: float | None) -> str:
    """The table of what is asked of each way, how far it is from that, and what it costs."""
    settings, (count, embedded) = migration.settings, migration.sizes
    of_map, of_old = settings.wanted_of_map, settings.wanted_of_old
    by_map, by_old = migration.estimates

    def row(name, share, asked, texts):
        margin = f"{plus_minus(abs(share.value - asked), None)} "
        margin += "more" if share.value >= asked else "less"
        costs = f"{texts} a query, at most" if texts else "0"
        return [name, plus_minus(*share), plus_minus(asked, None), margin, costs, texts]

    rows = [
        row("the old model as it is", by_old["recall_10"], of_map, 0),
        row("the mapped store as it is", by_map["recall_10"], of_map, 0),
    ]
    for name in by_map:
        length = length_of(name)
        rows.append(row(f"{length} candidates of the old model", by_old[name], of_old, length))
        rows.append(row(f"{length} candidates of the mapped store", by_map[name], of_map, length))
    everything = max(0, count - min(embedded, len(migration.pairs)))
    rows.append(["everything embedded again", "1", "", "", f"{everything:,}", everything])
    for cells in rows:
        seconds = cells.pop() * (seconds_per_text or 0)
        if seconds_per_text is not None:
            cells.append(f"{seconds:,.1f} s" if seconds < 7200 else f"{seconds / 3600:,.1f} h")
    header = ["Way", "Keeps", "Asked", "That is", "Texts to embed", "Time"][: len(rows[0])]
    return markdown(header, rows)


def suspicious(migration: Migration, old_ids: Sequence[str], new_ids: Sequence[str]) -> str:
    """The section on pairs whose partners are probably of other items; empty if there are none."""
    if migration.with_suspicious is None:
        return ""
    rows = [[str(o), old_ids[o], str(n), new_ids[n]] for o, n in migration.suspicious[:NUM_SHOWN]]
    shares = (of.by_map["recall_10"] for of in (migration.with_suspicious, migration.estimates))
    before, after = (plus_minus(*share) for share in shares)
    shown = {"before": before, "after": after, "count": len(migration.suspicious)}
    table = markdown(("Old row", "Id", "New row", "Id"), rows)
    return "\n" + filled("suspicious.md", table=table, **shown)


def figure(migration: Migration) -> Figure:
    """What is kept over the number of candidates, and what is asked."""
    kept = {"mapped store": migration.estimates.by_map, "old model": migration.estimates.by_old}
    lines = {
        name: [(length_of(x), share.value, share.uncertainty) for x, share in of.items()]
        for name, of in kept.items()
    }
    title = "What is kept, and what is asked of candidates (dotted)"
    drawn = error_bars({"share of the new model's ten that they hold": lines}, "candidates", title)
    (axis,) = drawn.axes
    axis.set_ylim(0, 1.02)
    asked = migration.settings.wanted_of_map, migration.settings.wanted_of_old
    for share, style in zip(asked, styles(kept).values(), strict=True):
        axis.axhline(share, color=style.colour, ls=":", lw=1)
    return drawn


def text(
    migration: Migration,
    seconds: float,
    old: Path,
    folder: Path,
    form: Form = STRICT,
    seconds_per_text: float | None = None,
) -> str:
    """The report in Markdown, on a file `old` of this form, whose results are in `folder`."""
    lists = {
        "the old model's queries in the old store": migration.estimates.by_old,
        "the new model's queries in the mapped store": migration.estimates.by_map,
    }
    kept = [[name, *_shares(of).values()] for name, of in lists.items()]
    header = ["Search", *(f"first {length_of(name)}" for name in migration.estimates.by_map)]
    basis = f"{len(migration.pairs):,} pairs of items that both models have embedded"
    if migration.search is not None:
        basis = f"{len(migration.pairs):,} matches (probability {migration.search:.2f} that the "
        basis += "search for them has succeeded)"
    judged = ""
    if migration.judged:
        documents, table = f"{len(migration.choice.rows):,}", _judged(migration.judged)
        judged = filled("judged.md", count=documents, table=table) + "\n"
    commands = "\n".join(f"    {line}" for line in apply_commands(old, folder / "map.npz", form))
    tried = (
        f"{METHODS[one.method]} {plus_minus(one.kept, None)}" for one in migration.choice.candidates
    )
    settings = migration.settings
    return filled(
        "migration.md",
        verdict=verdict(migration),
        reasons=reasons(migration),
        basis=basis,
        kept=markdown(header, kept),
        of_map=plus_minus(settings.wanted_of_map, None, 2),
        of_old=plus_minus(settings.wanted_of_old, None, 2),
        ways=_ways(migration, seconds_per_text),
        judged=judged,
        step=STEPS[migration.advice.strategy].format(commands=COMMANDS + commands),
        map=METHODS[migration.choice.best.method],
        tried=", ".join(tried),
        seconds=f"{seconds:.0f}",
    )


def _judged(judged: list[Judgement]) -> str:
    """The table of all strategies."""
    rows = []
    for one in judged:
        strategy, candidates, *_ = one.ranking
        name = "everything embedded again" if strategy == "re-embedded" else strategy
        if candidates:
            name = f"{candidates} {name} in the new model's order"
        scores = (one.ndcg_10, one.recall_10, one.recall_100)
        difference = "" if name == "old model" else _difference(one).replace("95% interval ", "")
        rows.append([name, *(plus_minus(x, None) for x in scores), difference])
    return markdown(("Search", "nDCG@10", "Recall@10", "Recall@100", "Difference"), rows)
