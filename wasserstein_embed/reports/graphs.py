"""Tables and figure of the graph experiment, with the numbers of the reference.

The reference is the public code of the experiment of Frogner et al. 2019: means over ten
Barabasi-Albert graphs (n = 64, m = 2), which are other samples of the generator than ours. It does
not state its number of steps.

Labels of the rows: `recipe`, `published` or `tuned`; `size`, the support points of a cloud or the
dimensions of a vector.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from common.run.figures import error_bars
from common.run.records import Record
from common.run.results import Published, Row, frame, pivot, points

# Generator, number of nodes and options of the reference's graphs.
REFERENCE_GRAPHS = ("scale_free", 64, {"m": 2})
REFERENCE_SIZES = (2, 5, 10, 20, 30, 40)
REFERENCE = {
    "euclidean": (0.256, 0.127, 0.102, 0.100, 0.101, 0.101),
    "hyperbolic": (0.237, 0.128, 0.120, 0.120, 0.118, 0.126),
    "kl": (0.817, 0.385, 0.218, 0.072, 0.034, 0.026),
    "wasserstein_r2": (0.138, 0.101, 0.106, 0.105, 0.103, 0.103),
    "wasserstein_r3": (0.109, 0.099, 0.100, 0.100, 0.100, 0.098),
}
NAMES = {
    "euclidean": "Euclidean",
    "hyperbolic": "Hyperbolic",
    "polar_hyperbolic": "Hyperbolic, polar coordinates",
    "kl": "KL",
}
GRAPHS = {  # generator -> title
    "scale_free": "scale-free graphs",
    "small_world": "small-world graphs",
    "block": "graphs of communities",
    "tree": "trees",
}
TICKS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # of the distortion
NAMES |= {f"wasserstein_r{k}": f"Wasserstein R^{k}" for k in range(1, 10)}


def published(row: Row, config: Mapping[str, Any]) -> Published | None:
    """The reference's mean distortion, on graphs of its generator by its recipe."""
    options = dict(config["graph_options"].get(config["graph"], {}))
    if (config["graph"], config["num_nodes"], options) != REFERENCE_GRAPHS:
        return None
    numbers = dict(zip(REFERENCE_SIZES, REFERENCE.get(row.method, ()), strict=False))
    size = row.get("size") if row.get("recipe") == "published" else None
    return Published(numbers[size]) if size in numbers else None


def tables(record: Record) -> dict[str, str]:
    """Title -> table: vectors and clouds by each recipe, and both at equal sizes.

    The description of all tables precedes the first one.
    """
    rows = frame(record.rows)
    clouds, number = rows.method.str.startswith("wasserstein"), {"titles": NAMES}
    number["published"] = partial(published, config=record.config)
    tables = {}
    for (recipe, are_clouds), part in rows.groupby(["recipe", clouds], sort=False):
        kind, size = ("Clouds", "Support points") if are_clouds else ("Vectors", "Dimensions")
        table = pivot(part, lines={"size": size}, columns="method", **number)
        tables[f"{kind}, {recipe} recipe"] = table
    equal = rows[rows.dim.isin(rows.dim[clouds]) & rows.dim.isin(rows.dim[~clouds])]
    if len(equal):
        title = "Equal numbers of coordinates (M k for a cloud of M points in R^k)"
        lines = {"method": "Embedding", "recipe": "Recipe"}
        tables[title] = pivot(equal, lines=lines, columns="dim")
    (title, first), *others = tables.items()
    about = (
        "Distortion, the mean of |embedded - path| / path over all pairs of nodes, of "
        f"{rows.dataset[0]}: mean ± std over {rows.num_runs[0]} graphs and random "
        "initializations. The recipe `published` has the settings of the public code, `tuned` has "
        "ours. The paper's numbers are means over ten other graphs of the same generator."
    )
    return {title: f"{about}\n\n{first}", **dict(others)}


def figures(record: Record) -> dict[str, Figure]:
    """`distortion`: distortion over the number of coordinates of a node, one panel per recipe."""
    rows = frame(record.rows)
    names = [name.split(",")[0] for name in NAMES.values()]  # one line for hyperbolic space
    rows["name"] = rows.method.map(dict(zip(NAMES, names, strict=True)))
    panels = {
        f"distortion, {recipe} recipe": points(part, "name", "dim")
        for recipe, part in rows.groupby("recipe", sort=False)
    }
    generator, size = rows.dataset[0].split(", ")
    title = f"Distortion of shortest paths of {GRAPHS.get(generator, generator)}, {size}"
    bounds = (0.0, np.inf)
    figure = error_bars(panels, "coordinates of a node", title, names, sharey=True, bounds=bounds)
    sizes = sorted(set(rows.dim))
    for axis in figure.axes:
        axis.set_yscale("symlog", linthresh=TICKS[1], linscale=0.4)  # bars may reach 0
        axis.set_ylim(bottom=-0.001)
        axis.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axis.set_xticks(sizes, map(str, sizes))
        axis.minorticks_off()
    return {"distortion": figure}
