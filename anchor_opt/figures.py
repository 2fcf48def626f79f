"""The figures of the experiments."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int
from ml_collections import ConfigDict

from anchor_opt.measure import ROLES, fixed_role, kept_anchors
from anchor_opt.relative import preprocess, unit_relative
from anchor_opt.tables import published, sweep_points
from common.data.pairs import Pair
from common.report import curves, error_bars, save_figure, scatter_grid
from common.retrieval import top_k
from common.workdir import Workdir

NEIGHBOURS = 15  # of each coloured word, rows of each coloured class
TITLES = {"gt": "GT", "seed": "Seed", "algorithm1": "Algorithm 1", "bootstrap": "Bootstrap"}


def retrieval(
    config: ConfigDict,
    work: Workdir,
    names: list[str],
    spaces: dict,
    groups: dict[str, list[int]],
    rows: list[dict],
) -> None:
    """Writes relative_spaces.png (as in the paper's Table 1) and mrr.png.

    Args:
      config: of the experiment.
      work: the run's folder.
      names: of the rows.
      spaces: role -> preprocessed rows.
      groups: label -> rows that share a colour.
      rows: of results.json.
    """
    role = config.optimise[0]
    both = config.source, config.target
    count = f"{len(names):,} {published(config).items}"
    title = f"{both[0]} and {both[1]}, {count}, anchors of {role} sought"
    panels = relative_panels(config, work, role, spaces, spaces)
    if panels and groups:
        figure = scatter_grid(panels, both, groups, f"Relative spaces by PCA: {title}")
        save_figure(figure, work.path / "relative_spaces.png")
    lines = _mrr_lines(work, config, role)
    if lines:
        levels = {
            row["method"]: row["mean"]
            for row in rows
            if (row["metric"], row["representation"]) == ("mrr", "relative")
            and row["method"] in ("gt", "seed", "oracle")
            and row["anchors"] != "discrete"
            and row["optimised"] == getattr(config, role)
            and row["target"] == row["optimised"] != row["source"]
        }
        figure = curves(lines, levels, "step", f"MRR (K = {config.k})", title)
        save_figure(figure, work.path / "mrr.png")


def sweep(config: ConfigDict, work: Workdir, rows: list[dict]) -> None:
    """Writes sweep.png: MRR and Jaccard of each method over the value varied."""
    # All methods from the start, so that a colour means the same one in every sweep.
    lines = {name: {method: [] for method in config.methods} for name in ("mrr", "jaccard")}
    for value, method, metrics in sweep_points(config, rows):
        for name, methods in lines.items():
            row = metrics[name]
            methods[method].append((value, row["mean"], row["std"]))
    title = f"{config.source} and {config.target}"
    figure = error_bars(
        {"MRR (K = 10)": lines["mrr"], "Jaccard (K = 10)": lines["jaccard"]},
        config.sweep_over,
        title,
    )
    save_figure(figure, work.path / "sweep.png")


def relative_panels(
    config: ConfigDict, work: Workdir, role: str, anchored: dict, shown: dict
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Both relative spaces by each method's kept anchors, of the first random seed.

    Args:
      config: of the experiment.
      work: the run's folder.
      role: the space whose anchors were sought.
      anchored: role -> rows of which the anchors are some.
      shown: role -> rows to show.
    """
    panels = {}
    for method, title in TITLES.items():
        if method in config.methods:
            part = f"seed{config.random_seeds[0]}-{role}-{method}"
            fixed_rows, moving = kept_anchors(work, part)
            given = jnp.take(anchored[fixed_role(role)], fixed_rows, axis=0)
            own = {role: moving, fixed_role(role): given}
            panels[title] = tuple(np.asarray(unit_relative(shown[r], own[r])) for r in ROLES)
    return panels


def word_groups(chosen, data: Pair) -> dict[str, list[int]]:
    """The nearest words of each chosen one that is in the vocabulary; else of the first ones."""
    row_of = {word: row for row, word in enumerate(data.names)}
    rows = [row_of[word] for word in chosen if word in row_of] or list(range(5))
    space = preprocess(jnp.asarray(data.source))
    chosen = jnp.take(space, np.asarray(rows), axis=0)
    near = np.asarray(top_k(chosen, space, NEIGHBOURS)[1])
    return {data.names[row]: list(members) for row, members in zip(rows, near, strict=True)}


def class_groups(labels: Int[np.ndarray, " n"], data: Pair) -> dict[str, list[int]]:
    """Of each class its most typical rows: those nearest to its mean in the source space."""
    space = np.asarray(preprocess(jnp.asarray(data.source)))
    groups = {}
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        typical = np.argsort(-space[rows] @ space[rows].mean(axis=0), kind="stable")
        groups[str(label)] = rows[typical[:NEIGHBOURS]].tolist()
    return groups


def _mrr_lines(work: Workdir, config: ConfigDict, role: str) -> dict:
    """Steps and MRR of each random seed; the stages of the bootstrap follow each other."""
    records = [record for record in work.records() if "mrr" in record]
    lines = {}
    for method in ("algorithm1", "bootstrap"):
        for random_seed in config.random_seeds:
            part = f"seed{random_seed}-{role}-{method}"
            mine = [r for r in records if r["part"].split("/")[0] == part]
            steps, values = [], []
            for stage in dict.fromkeys(r["part"] for r in mine):
                offset = steps[-1] if steps else 0
                steps += [offset + r["step"] for r in mine if r["part"] == stage]
                values += [r["mrr"] for r in mine if r["part"] == stage]
            if steps:
                lines.setdefault(TITLES[method], []).append((np.array(steps), np.array(values)))
    return lines
