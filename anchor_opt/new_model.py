"""Changing the embedding model of a vector store without embedding its texts again.

The store has the vectors of an old model, and queries come from a new one. The store is mapped into
the new model's space, from some items that both have embedded, or from a few and a sample of both
models in unknown order, which `align.discover` matches. What is kept of the retrieval from the
re-embedded store is measured, beside the estimate that needs no re-embedded store.

Metrics: those of `common.remapping.measured`; `estimate` of recall_10,
its `uncertainty`, its absolute `error`, and `flagged`, whether it is said not to be trusted.
"""

from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Array, Float
from ml_collections import ConfigDict
from tqdm import tqdm

from anchor_opt import align
from common import alignment, remapping
from common.linear import unit
from common.run import results
from common.run.results import Row, joined, pivot, select
from common.run.settings import settings
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs

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
                sizes = config.num_rows, count, config.search_rows
                compute = partial(_measured, both[one], both[other], *sizes, seed, values)
                part = work.part(f"{prefix}-run{seed}-{count}-pairs", compute)
                found += [row | {"random_seed": seed, "num_pairs": count} for row in part["rows"]]
            fields = {"dataset": dataset, "num_items": config.num_rows}
            rows += results.summarise(found, experiment=config.experiment, **fields)
    return results.finish(work, rows, f"{joined(tables(rows))}\n\n{NOTES}")


def _measured(
    old: Float[Array, "N d_old"],
    new: Float[Array, "N d_new"],
    num_rows: int,
    num_pairs: int,
    search_rows: int,
    random_seed: int,
    values: remapping.Settings,
) -> dict:
    """Fields of `Row` of every map of a random store from so many pairs, and of the estimate."""
    order = np.random.default_rng(random_seed).permutation(len(old))
    old, old_queries = np.split(old[order], [num_rows])
    new, new_queries = np.split(new[order], [num_rows])
    # The order is random, so that the first rows of the store are a random sample.
    if num_pairs >= remapping.MANY_PAIRS:
        failed, pairs = False, (old[:num_pairs], new[:num_pairs])
        aligner = alignment.fit("procrustes", *pairs)
    else:
        shuffled = np.random.default_rng(random_seed).permutation(search_rows)
        known = np.stack([np.arange(num_pairs), np.argsort(shuffled)[:num_pairs]], axis=1)
        sample = old[:search_rows], new[shuffled]
        options = {"rows": search_rows, "ordered": False, "random_seed": random_seed}
        found = align.discover(*sample, known, **options)
        failed, aligner = found.failed, found.aligner
        pairs = tuple(x[rows] for x, rows in zip(sample, found.anchors.T, strict=True))
    choice = remapping.choose(aligner, *pairs, values)
    queries, embedded = (unit(aligner.normalise_target(x)) for x in (new_queries, new))
    by_method = {}
    for candidate in choice.candidates:
        mapped = unit(remapping.fitted(aligner, *pairs, candidate).apply(old))
        by_method[candidate.method] = remapping.measured(queries, mapped, embedded)
    true = by_method[choice.aligner.method]
    estimates = remapping.estimated(choice.mapped, choice.embedded, num_rows, values)
    value, uncertainty = estimates["recall_10"]
    by_method["chosen"] = true | {
        "estimate": value,
        "uncertainty": uncertainty,
        "error": abs(value - true["recall_10"]),
        "flagged": float(failed or uncertainty > values.tolerance),
    }
    if num_pairs == num_rows:
        store, asked = (unit(aligner.normalise_source(x)) for x in (old, old_queries))
        by_method["old model"] = remapping.measured(queries, store, embedded, asked)
    rows = [
        {"method": method, "metric": metric, "value": value}
        for method, found in by_method.items()
        for metric, value in found.items()
    ]
    return {"rows": rows, "notes": {"failed": failed, "chosen": choice.aligner.method}}


def tables(rows: list[Row]) -> dict[str, str]:
    """Title -> Markdown: what is kept, and estimates beside it, for each direction."""
    found = {}
    lines = {"num_pairs": "Pairs", "method": "Map"}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        of = select(rows, dataset=dataset)
        kept = [row for row in of if row.metric in MEASURES]
        title = f"{dataset}, {of[0].num_items:,} vectors"
        found[title] = pivot(kept, lines=lines, titles=MEASURES)
        shown = [row for name in ESTIMATES for row in select(of, metric=name, method="chosen")]
        title = f"{dataset}: the estimate of recall@10"
        found[title] = pivot(shown, lines={"num_pairs": "Pairs"}, titles=ESTIMATES)
    return found
