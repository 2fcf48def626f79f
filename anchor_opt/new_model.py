"""Changing the embedding model of a vector store without embedding its texts again.

The store has the vectors of an old model, and queries come from a new one. The store is mapped into
the new model's space, from some items that both have embedded, or from a few and a sample of both
models in unknown order, which `align.discover` matches. What is kept of the retrieval from the
re-embedded store is measured, beside the estimate that needs no re-embedded store.

Labels of the rows: none. Metrics: those of `common.remapping.measured`; `estimate` of recall_10,
its `uncertainty`, its absolute `error`, and `flagged`, whether it is said not to be trusted.
"""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float
from ml_collections import ConfigDict
from tqdm import tqdm

from anchor_opt import align
from common import alignment, remapping, report, space_pairs
from common.data import paired_spaces
from common.linear import unit
from common.remapping import Candidate, Choice
from common.report import Row, joined, pivot, select
from common.settings import settings
from common.workdir import Workdir

OLD = "old model"  # queries and store by the old model, no map
CHOSEN = "chosen"
MEASURES = {"recall_1": "Recall@1", "recall_10": "Recall@10", "rank_correlation": "Rank corr."}
ESTIMATES = {
    "recall_10": "Recall@10",
    "estimate": "Estimate",
    "uncertainty": "Uncertainty",
    "error": "Error",
    "flagged": "Flagged",
}
NOTES = (
    "Recall@k: the fraction of the k vectors nearest to a query in the re-embedded store that are "
    "among the k nearest in the mapped one. Rank corr.: Spearman's, of the cosines of a query with "
    "2,000 vectors of both. Both spaces are centred. Pairs: items embedded by both models; with "
    "fewer than 100, a sample of both models in unknown order is matched first. chosen: the "
    "simplest of the three maps that is as good as the best on held-out pairs or matches. "
    "old model: no map; its own queries in its own store. Estimate: of recall@10, without the "
    "re-embedded store, and half the width of its interval. Flagged: the fraction of runs in which "
    "it is said not to be trusted."
)


class Store(NamedTuple):
    """Raw vectors of a store and of queries, by the old model and by the new one."""

    old: Float[Array, "n d_old"]
    new: Float[Array, "n d_new"]
    old_queries: Float[Array, "q d_old"]
    new_queries: Float[Array, "q d_new"]


def new_model(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """The experiment: tables of each pair of spaces, in both directions."""
    values = settings(remapping.Settings, config.remapping)
    rows = []
    for pair in config.pairs:
        names = space_pairs.names(pair)
        needed = config.num_rows + config.num_queries
        data = paired_spaces.load(
            *names, num_words=needed, cache=cache, max_rows=max(needed, config.max_rows)
        )
        both = data.source, data.target
        for one, other in ((0, 1), (1, 0)):
            dataset, found = f"{names[one]} -> {names[other]}", []
            prefix = space_pairs.file_name(names[one], names[other])
            tasks = [
                (seed, count)
                for seed in config.random_seeds
                for count in (*config.known_pairs, config.num_rows)
            ]
            for seed, count in tqdm(tasks, desc=dataset, unit="part"):
                store = drawn(both[one], both[other], config.num_rows, seed)
                compute = partial(_measured, store, count, config.search_rows, seed, values)
                part = work.part(f"{prefix}-run{seed}-{count}-pairs", compute)
                found += [row | {"random_seed": seed, "num_pairs": count} for row in part["rows"]]
            fields = {"dataset": dataset, "num_items": config.num_rows}
            rows += report.summarise(found, experiment=config.experiment, **fields)
    return report.finish(work, rows, f"{joined(tables(rows))}\n\n{NOTES}")


def drawn(
    old: Float[Array, "N d_old"], new: Float[Array, "N d_new"], num_rows: int, random_seed: int
) -> Store:
    """A random store of `num_rows` items; all others are queries."""
    order = np.random.default_rng(random_seed).permutation(len(old))
    store, queries = order[:num_rows], order[num_rows:]
    return Store(old[store], new[store], old[queries], new[queries])


def remapped(
    store: Store,
    num_pairs: int,
    search_rows: int,
    random_seed: int,
    values: remapping.Settings,
) -> tuple[Choice, tuple[Float[Array, "k d_old"], Float[Array, "k d_new"]], bool]:
    """The map from some pairs, the rows that it is fitted to, and whether the search has failed.

    The store is in random order, so that its first rows are a random sample. With fewer than 100
    pairs the new model's vectors of the first `search_rows` are matched in unknown order.
    """
    if num_pairs >= remapping.MANY_PAIRS:
        pairs = np.stack([np.arange(num_pairs)] * 2, axis=1)
        failed, new = False, store.new
        aligner = alignment.fit("procrustes", store.old[:num_pairs], new[:num_pairs])
    else:
        order = np.random.default_rng(random_seed).permutation(search_rows)
        old, new = store.old[:search_rows], store.new[:search_rows][order]
        known = np.stack([np.arange(num_pairs), np.argsort(order)[:num_pairs]], axis=1)
        found = align.discover(
            old, new, known, rows=search_rows, ordered=False, random_seed=random_seed
        )
        pairs, failed, aligner = found.anchors, found.failed, found.aligner
    rows = store.old[pairs[:, 0]], new[pairs[:, 1]]
    return remapping.choose(aligner, *rows, values), rows, failed


def _measured(
    store: Store, num_pairs: int, search_rows: int, random_seed: int, values: remapping.Settings
) -> dict:
    """Fields of `Row` of every map from so many pairs, and of the estimate."""
    choice, pairs, failed = remapped(store, num_pairs, search_rows, random_seed, values)
    aligner = choice.aligner
    queries = unit(aligner.normalise_target(store.new_queries))
    embedded = unit(aligner.normalise_target(store.new))

    def kept(candidate: Candidate) -> dict[str, float]:
        one = remapping.fitted(aligner, *pairs, candidate)
        return remapping.measured(queries, unit(one.apply(store.old)), embedded)

    by_method = {candidate.method: kept(candidate) for candidate in choice.candidates}
    true = by_method[aligner.method]
    estimates = remapping.estimated(choice.mapped, choice.embedded, len(store.old), values)
    value, uncertainty = estimates["recall_10"]
    by_method[CHOSEN] = true | {
        "estimate": value,
        "uncertainty": uncertainty,
        "error": abs(value - true["recall_10"]),
        "flagged": float(failed or uncertainty > values.tolerance),
    }
    if num_pairs == len(store.old):
        old, old_queries = (aligner.normalise_source(x) for x in (store.old, store.old_queries))
        by_method[OLD] = remapping.measured(queries, old, embedded, old_queries)
    rows = [
        {"method": method, "metric": metric, "value": value}
        for method, found in by_method.items()
        for metric, value in found.items()
    ]
    return {"rows": rows, "notes": {"failed": failed, "chosen": aligner.method}}


def tables(rows: list[Row]) -> dict[str, str]:
    """Title -> Markdown: what is kept, and estimates beside it, for each direction."""
    found = {}
    lines = {"num_pairs": "Pairs", "method": "Map"}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        of = select(rows, dataset=dataset)
        kept = [row for row in of if row.metric in MEASURES]
        title = f"{dataset}, {of[0].num_items:,} vectors"
        found[title] = pivot(kept, lines=lines, titles=MEASURES)
        shown = [row for name in ESTIMATES for row in select(of, metric=name, method=CHOSEN)]
        title = f"{dataset}: the estimate of recall@10"
        found[title] = pivot(shown, lines={"num_pairs": "Pairs"}, titles=ESTIMATES)
    return found
