"""Spaces that share a part of their items in unknown order, and how often failures are reported.

A share of the rows of both spaces are the same items, the other rows have no partner, and neither
space has an order that the methods could use. Each search of the bootstrap says whether it has
failed; here that is compared with whether it has.

Labels of the rows: `representation` is 'relative', 'mapped' (the method's own map) or 'search' (the
report of a search); `sweep_over` is 'shared', the fraction of the items that both spaces have,
'known pairs', their number, or 'noise', that of a noisy copy of one space.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from matplotlib.figure import Figure
from ml_collections import ConfigDict
from sklearn.metrics import roc_auc_score, roc_curve

from anchor_opt import runner
from anchor_opt.methods import METHODS, READ_TRUTH
from anchor_opt.methods.agreement import success_probability
from anchor_opt.problem import Problem, Run, partly_shared
from anchor_opt.relative import unit_relative
from anchor_opt.runner import METHOD_TITLES, rates
from common import csls
from common.linear import preprocess
from common.metrics import mrr
from common.retrieval import top_k
from common.run import results
from common.run.figures import COLOURS, small_multiples
from common.run.results import Row, joined, pivot, select
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs

Spaces = tuple[Float[Array, "N d_source"], Float[Array, "N d_target"]]  # row i is the same item
NOTES = (
    "MRR of the shared items, whose partners are sought among all rows of the target. lstsq_truth: "
    "least squares on the true pairs. A search has succeeded in truth if by its own map it finds "
    "at least half as many of the shared items (P@1 by CSLS) as the orthogonal map of all true "
    "pairs does. False success: a search that has not succeeded and does not say so. False "
    "failure: one that has succeeded and is reported as failed."
)


def overlap(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """The experiment: tables, and the figures mrr and detector."""
    searches, rows, failed = [], [], []

    def measure_at(names: tuple[str, str], spaces: Spaces, over: str, value: float) -> None:
        grid = runner.grid(config, source=names[0], target=names[1])
        sizes = {"num_rows": config.num_rows, "shared": value if over == "shared" else 1.0}
        num_pairs = value if over == "known pairs" else grid.num_pairs
        sizes |= {"num_anchors": grid.num_anchors, "num_pairs": num_pairs}

        def problem(role: str, random_seed: int) -> Problem:
            return partly_shared(*spaces, **sizes, random_seed=random_seed)

        prefix = f"{space_pairs.file_name(*names)}-{over.replace(' ', '_')}-{value:g}-"
        found, broken = runner.collect(grid, work, problem, measure, prefix)
        fields = {"dataset": " -> ".join(names), "sweep_over": over, "sweep_value": value}
        searches.extend(row | fields for row in found)
        fields |= {"num_items": config.num_rows, "num_pairs": num_pairs}
        rows.extend(results.summarise(found, experiment=config.experiment, **fields))
        failed.extend(broken)

    for pair in config.pairs:
        names = space_pairs.names(pair)
        needed = math.ceil((2 - min(config.shared, default=1.0)) * config.num_rows)
        data = paired_spaces.load(*names, num_words=needed, cache=cache)
        spaces = preprocess(jnp.asarray(data.source)), preprocess(jnp.asarray(data.target))
        for value in config.shared:
            measure_at(names, spaces, "shared", value)
        for count in config.known_pairs:
            measure_at(names, spaces, "known pairs", count)
    for value in config.noise:
        space = paired_spaces.load_space(config.noisy_space, cache).vectors[: config.num_rows]
        source = preprocess(jnp.asarray(space))
        copy = space_pairs.noisy_isometry(jax.random.key(0), source, value)
        measure_at((config.noisy_space, "noisy copy"), (source, copy), "noise", value)
    figures = {"mrr": curve_figure(rows, config.k)}
    if any(row["metric"] == "gain" for row in searches):
        figures["detector"] = detector_figure(searches, config.bootstrap.min_gain)
    text = f"{joined(tables(rows) | runner.failures(failed))}\n\n{NOTES}"
    return results.finish(work, rows, text, figures)


def measure(problem: Problem, role: str, run: Run, method: str) -> dict:
    """Runs a method, which sees the truth only if it is one of `READ_TRUTH`, and measures it."""
    known = problem.truth
    given = problem if method in READ_TRUTH else problem._replace(truth=None)
    result = METHODS[method](given, run)
    shared = np.flatnonzero(known >= 0)
    source = unit_relative(problem.source[shared], problem.source_anchors[: len(result.anchors)])
    target = unit_relative(problem.target, result.anchors)
    found = top_k(source, target, run.settings.k)[1]
    rows = [_row("mrr", mrr(found, jnp.asarray(known[shared])), "relative")]
    if result.maps is not None:
        both = result.coordinates(problem.source, problem.target)
        matches = csls.matches(*both, neighbours=run.settings.k)
        right = np.asarray(matches.to_target)[shared] == known[shared]
        rows.append(_row("p_at_1", right.mean(), "mapped"))
        if "failed" in result.notes:
            rows += runner.search_report(problem, result.notes, right.mean(), run.settings.k)
    return {"rows": rows, "notes": dict(result.notes)}


def _row(metric: str, value, representation: str) -> dict:
    row = {"source": "source", "target": "target", "metric": metric, "value": float(value)}
    return row | {"labels": {"representation": representation}}


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> Markdown: results over the shared fraction and over the noise, and the reports."""
    found = {}
    titles = {method: METHOD_TITLES.get(method, method) for method in METHODS}
    for over in dict.fromkeys(row.sweep_over for row in rows):
        lines = {"dataset": "Spaces", "sweep_value": over.capitalize()}
        for metric, title in (("mrr", "MRR"), ("p_at_1", "P@1 of the method's own map")):
            if shown := select(rows, metric=metric, sweep_over=over):
                table = pivot(shown, lines=lines, columns="method", titles=titles)
                found[f"{title} over {over}"] = table
    return found | rates(rows)


def curve_figure(rows: Sequence[Row], k: int) -> Figure:
    """MRR of each method over the shared fraction or the noise, with a panel for each pair."""
    panels: dict[str, dict[str, list]] = {}
    for row in select(rows, metric="mrr"):
        panel = panels.setdefault(f"{row.sweep_over}\n{row.dataset}", {})
        points = panel.setdefault(METHOD_TITLES.get(row.method, row.method), [])
        points.append((row.sweep_value, row.mean, row.std))
    return small_multiples(panels, {}, f"MRR (K = {k})", "")


def detector_figure(measured: Sequence[dict], min_gain: float) -> Figure:
    """Each search: what it finds, relative to the truth, over its gain; and the ROC of the gain.

    Args:
      measured: rows of `runner.search_report`, with `dataset`.
      min_gain: threshold of the search.
    """
    figure = Figure(figsize=(12, 4.4), layout="constrained")
    axis, roc = figure.subplots(1, 2, width_ratios=(3, 2))
    points: dict[str, dict[str, list[float]]] = {}
    for row in measured:
        if row["metric"] in ("gain", "relative_p_at_1"):
            both = points.setdefault(row["dataset"], {"gain": [], "relative_p_at_1": []})
            both[row["metric"]].append(row["value"])
    for colour, (dataset, both) in zip(COLOURS, points.items(), strict=False):
        x, y = both["gain"], both["relative_p_at_1"]
        axis.scatter(x, y, s=18, color=colour, label=dataset, alpha=0.8, linewidths=0)
    axis.axvline(min_gain, color="0.4", ls="--", lw=1, label="threshold of the search")
    x = np.linspace(0, 1, 200)
    axis.plot(x, success_probability(x, min_gain), color="0.7", lw=1, label="its probability")
    axis.axhline(runner.SUCCESS, color="0.4", ls=":", lw=1, label="success in truth")
    axis.set(
        xlabel="gain: from wrong pairs (0) to full agreement (1)",
        ylabel="P@1, relative to the true orthogonal map",
    )
    gains, reached = (
        np.concatenate([both[name] for both in points.values()])
        for name in ("gain", "relative_p_at_1")
    )
    succeeded = reached >= runner.SUCCESS
    title = f"{succeeded.sum()} of {len(succeeded)} searches succeed"
    if 0 < succeeded.sum() < len(succeeded):
        false, true, _ = roc_curve(succeeded, gains)
        roc.plot(false, true, color=COLOURS[0], drawstyle="steps-post")
        title += f"\narea under the curve {roc_auc_score(succeeded, gains):.3f}"
    roc.set(
        xlabel="failed searches with a higher gain",
        ylabel="successful searches",
        title=title,
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
    )
    for one in (axis, roc):
        one.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    return figure
