"""Nodes of graphs as vectors, distributions and clouds whose distances are shortest paths."""

import itertools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict
from tqdm import tqdm

from common import cli, report, train
from common.errors import UserError
from common.workdir import Workdir, write_atomically, write_json
from wasserstein_embed import cloud, graphs_report, metric_embed, networks, paper_graphs
from wasserstein_embed.metric_embed import VECTORS, Data, Settings


def graphs(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Every embedding, recipe and size: the distortion of all shortest paths, over all graphs."""
    del cache  # graphs are drawn or read
    _check(config)
    drawn = networks.load(config)
    data = _pairs(drawn)
    measured, speeds = [], []
    tasks = [
        (recipe, *task)
        for recipe in config.recipes
        for method in config.methods
        if method in config[recipe]
        for task in _sizes(config, method)
    ]
    bar = tqdm(tasks, desc="embedding graphs", unit="training")
    for recipe, method, k, size in bar:
        name = f"{method}_r{k}" if k else method
        bar.set_postfix_str(f"{name}, {size}, {recipe}")
        settings = _settings(config, recipe, method, (size, k) if k else (size,))
        part = f"{recipe}-{name}-{size}"
        found = work.part(
            part,
            lambda: _fit(settings, data, len(drawn), config, recipe, work, part),  # noqa: B023
        )
        train.forget_checkpoints(work, part)
        shared = {"recipe": recipe, "method": name, "size": size, "dim": size * (k or 1)}
        measured += [
            shared | {"metric": "distortion", "random_seed": graph, "value": value}
            for graph, value in enumerate(found["distortion"])
        ]
        speeds.append(shared | found)
    rows = [_row(row, config, len(drawn[0])) for row in report.summarise(measured)]
    full, short = graphs_report.tables(config, rows, speeds)
    write_json(work.path / "results.json", rows)
    write_atomically(work.path / "table.md", full.encode())
    report.save_figure(graphs_report.figure(config, rows), work.path / "distortion.png")
    return short


def _check(config: ConfigDict) -> None:
    """Wrong names and values are said at the start."""
    for method in config.methods:
        cli.choose(dict.fromkeys((*VECTORS, "wasserstein")), method, "embedding")
    for recipe in config.recipes:
        cli.choose(dict.fromkeys(("reference", "tuned")), recipe, "recipe")
        for method, training in config[recipe].items():
            cli.choose(dict.fromkeys(("constant", "cosine")), training.schedule, "schedule")
            cli.two(config, f"{recipe}.{method}.init")
            low, high = training.init
            if not low <= high:
                raise UserError(f"{recipe}.{method}.init is {low, high}: give the lower one first.")
            cli.positive(config, f"{recipe}.{method}.learning_rate")
        cli.two(config, f"{recipe}.wasserstein.epsilon")
        for name in ("wasserstein.epsilon", "wasserstein.iterations"):
            cli.positive(config, f"{recipe}.{name}")
        cli.positive(config, f"measure_iterations.{recipe}")
    cli.positive(config, "num_graphs", "num_nodes", "blocks", "chunk")
    cli.positive(config, "points", "dimensions", "cloud_dimensions")
    cli.share(config, "rewire", "within", "between")
    cli.multiple(config, metric_embed.UPDATES, "steps.vectors", "steps.clouds")


def _sizes(config: ConfigDict, method: str) -> list[tuple[str, int, int]]:
    """(method, k of a cloud or 0, points or dimensions)."""
    if method == "wasserstein":
        return [
            (method, *pair) for pair in itertools.product(config.cloud_dimensions, config.points)
        ]
    return [(method, 0, size) for size in config.dimensions]


def _settings(config: ConfigDict, recipe: str, geometry: str, shape: tuple[int, ...]) -> Settings:
    values = {
        name: tuple(value) if isinstance(value, (list, tuple)) else value
        for name, value in config[recipe][geometry].items()
    }
    steps = config.steps["clouds" if geometry == "wasserstein" else "vectors"]
    return Settings(geometry, shape, steps=steps, **values)


def _pairs(drawn: list) -> Data:
    """All pairs of nodes of all graphs, graph after graph."""
    n = len(drawn[0])
    first, second = np.triu_indices(n, 1)
    offset = n * np.arange(len(drawn))[:, None]
    target = [networks.shortest_paths(graph)[first, second] for graph in drawn]
    return Data(
        jnp.asarray((offset + first).ravel()),
        jnp.asarray((offset + second).ravel()),
        jnp.asarray(np.concatenate(target), jnp.float32),
    )


def _fit(
    settings: Settings,
    data: Data,
    num_graphs: int,
    config: ConfigDict,
    recipe: str,
    work: Workdir,
    part: str,
) -> dict:
    """Trains all graphs at once; the distortion of each, and how long one took."""
    keys = jax.vmap(jax.random.key)(jnp.arange(num_graphs))
    num_nodes = (int(data.second.max()) + 1) // num_graphs
    resumed = (work.path / "checkpoints" / part).exists()
    start = time.perf_counter()
    state = train.run(
        metric_embed.step,
        metric_embed.init(settings, keys, num_nodes),
        data,
        settings,
        num_steps=settings.steps // metric_embed.UPDATES,
        chunk=config.chunk,
        work=work,
        part=part,
    )
    seconds = None if resumed else (time.perf_counter() - start) / num_graphs
    found = _measure(settings, state.x, data, num_graphs, config.measure_iterations[recipe])
    return found | {"seconds": seconds}


def _measure(settings: Settings, x, data: Data, num_graphs: int, iterations: int) -> dict:
    """The distortion of each graph; clouds by the distance that all experiments share."""
    value = "divergence" if settings.debiased else "cost"
    compare = cloud.Distance("euclidean", 1.0, settings.epsilon[1], iterations, value, False)
    pairs = Data(*(part.reshape(num_graphs, -1) for part in data))
    first, second = pairs.first[0], pairs.second[0]  # of the first graph, so of each by itself
    found: dict = {"distortion": []}
    for nodes, target in zip(jnp.split(x, num_graphs), pairs.target, strict=True):
        if settings.geometry == "wasserstein":
            distance = cloud.pairs(cloud.Clouds(nodes), first, second, compare)
        else:
            distance = VECTORS[settings.geometry](nodes[first], nodes[second])
        found["distortion"].append(float(metric_embed.distortion(distance, target)))
    if settings.geometry == "wasserstein":  # of the last graph, as good as any
        share = cloud.share_converged(cloud.Clouds(nodes), first, second, compare)
        found["converged"] = float(share)
    return found


def _row(row: dict, config: ConfigDict, num_nodes: int) -> dict:
    """A summarised row in the form of results.json, the reference's value beside it."""
    published = None
    if row["recipe"] == "reference":
        published = paper_graphs.value(config, row["method"], row["size"])
    return row | {
        "experiment": config.experiment,
        "dataset": f"{Path(config.graph).name}, {num_nodes} nodes",
        "source": "graph",
        "target": "embedding",
        "paper_value": published,
        "standin": False,
    }
