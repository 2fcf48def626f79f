"""Tables and figure of the graph experiment, with the numbers of the reference.

The reference is the public code of the experiment of Frogner et al. 2019: means over ten
Barabasi-Albert graphs (n = 64, m = 2), which are other samples of the generator than ours. It does
not state its number of steps.

Labels of the rows: `recipe`, `published` or `tuned`; `size`, the support points of a cloud or the
dimensions of a vector.
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from common.run.figures import error_bars
from common.run.results import Row, pivot, select

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


def reference(method: str, size: int) -> float | None:
    """The reference's mean distortion; None where it has no number."""
    return dict(zip(REFERENCE_SIZES, REFERENCE.get(method, ()), strict=False)).get(size)


def describe(rows: Sequence[Row]) -> str:
    """What the tables show."""
    return (
        "Distortion, the mean of |embedded - path| / path over all pairs of nodes, of "
        f"{rows[0].dataset}: mean ± std over {rows[0].num_runs} graphs and random "
        "initializations. The recipe `published` has the settings of the public code, `tuned` has "
        "ours. The paper's numbers are means over ten other graphs of the same generator."
    )


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> table: vectors and clouds by each recipe, and both at equal sizes.

    The description of all tables precedes the first one.
    """
    clouds = [row for row in rows if row.method.startswith("wasserstein")]
    vectors = [row for row in rows if row not in clouds]
    tables = {}
    for recipe in dict.fromkeys(row.get("recipe") for row in rows):
        for kind, size, members in (
            ("Vectors", "Dimensions", vectors),
            ("Clouds", "Support points", clouds),
        ):
            if chosen := select(members, recipe=recipe):
                tables[f"{kind}, {recipe} recipe"] = pivot(
                    chosen, lines={"size": size}, columns="method", paper=True, titles=NAMES
                )
    shared = {row.dim for row in clouds} & {row.dim for row in vectors}
    if shared:
        title = "Equal numbers of coordinates (M k for a cloud of M points in R^k)"
        lines = {"method": "Embedding", "recipe": "Recipe"}
        equal = [row for row in rows if row.dim in shared]
        tables[title] = pivot(equal, lines=lines, columns="dim")
    (title, first), *others = tables.items()
    return {title: f"{describe(rows)}\n\n{first}", **dict(others)}


def figure(rows: Sequence[Row]) -> Figure:
    """Distortion over the number of coordinates of a node, one panel per recipe."""
    panels: dict[str, dict[str, list]] = {}
    for recipe in dict.fromkeys(row.get("recipe") for row in rows):
        panel = panels.setdefault(f"distortion, {recipe} recipe", {})
        for row in rows:
            name, *_ = NAMES.get(row.method, row.method).split(",")  # one line for hyperbolic space
            points = panel.setdefault(name, [])
            if row.get("recipe") == recipe:
                points.append((row.dim, row.mean, row.std))
    generator, size = rows[0].dataset.split(", ")
    title = f"Shortest paths of {GRAPHS.get(generator, generator)}, {size}"
    known = [name.split(",")[0] for name in NAMES.values()]
    figure = error_bars(panels, "coordinates of a node", title, known, sharey=True)
    lowest = min(row.mean - row.std for row in rows)
    sizes = sorted({row.dim for row in rows})
    for axis in figure.axes:
        axis.set_yscale("symlog", linthresh=TICKS[1], linscale=0.4)  # bars may reach 0
        axis.set_ylim(bottom=min(0.0, lowest) - 0.001)
        axis.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axis.set_xticks(sizes, map(str, sizes))
        axis.minorticks_off()
    return figure
