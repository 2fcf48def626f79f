"""Shortest paths of graphs: the distortion of each recipe, geometry and size, over all graphs."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from common.errors import check_choice, check_count
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import ALL_SEEDS, Case, Task
from common.run.workdir import Workdir
from wasserstein_embed import graphs, metric_embed
from wasserstein_embed.reports import graphs as report

GEOMETRIES = (*metric_embed.VECTOR_DISTANCES, "wasserstein")
RECIPES = ("published", "tuned")


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Trains all embeddings, and returns tables of their distortion."""
    del cache  # the graphs are random
    grid = list(trainings(config))
    check_count("num_graphs", config.num_graphs)
    check_count("num_nodes", config.num_nodes, least=2)
    options = dict(config.graph_options.get(config.graph, {}))
    samples = [
        graphs.sample(config.graph, config.num_nodes, options, random_seed)
        for random_seed in range(config.num_graphs)
    ]
    pairs = graphs.all_pairs(samples)

    def measure(task: Task) -> tuple[list[Row], dict[str, Any]]:
        distortions = graphs.distortions(
            task.case.problem(ALL_SEEDS),
            pairs,
            num_graphs=config.num_graphs,
            measure_iterations=config.measure_iterations[task.case.fields["labels"]["recipe"]],
            checkpoint_every=config.checkpoint_every,
            work=work,
            task=task.name,
        )
        return [task.row("distortion", x, random_seed=i) for i, x in enumerate(distortions)], {}

    rows = tasks.run(grid, measure, work).rows
    return records.finish(work, results.averaged(rows), report)


def trainings(config: ConfigDict) -> Iterator[Task]:
    """The trainings of all recipes, and for each of all geometries and sizes.

    Each embeds all graphs, a graph with its own random seed. The problem of a case is its
    `metric_embed.Settings`. UserError: an unknown recipe or geometry.
    """
    fields = {"experiment": config.experiment, "num_items": config.num_nodes}
    fields["dataset"] = f"{config.graph}, {config.num_nodes} nodes"
    for recipe, geometry in itertools.product(config.recipes, config.methods):
        check_choice("recipe", recipe, RECIPES)
        check_choice("geometry", geometry, GEOMETRIES)
        if geometry not in config[recipe]:
            continue
        if geometry == "wasserstein":
            sizes = itertools.product(config.cloud_dimensions, config.points)
            shapes, steps = {(m, k): f"wasserstein_r{k}" for k, m in sizes}, config.steps.clouds
        else:
            shapes, steps = {(d,): geometry for d in config.dimensions}, config.steps.vectors
        for shape, method in shapes.items():
            about = {"geometry": geometry, "shape": shape, "steps": steps}
            values = settings(metric_embed.Settings, config[recipe][geometry], **about)
            labels = {"recipe": recipe, "size": shape[0]}
            own = fields | {"dim": math.prod(shape), "labels": labels}
            case = Case(f"{recipe}-{shape[0]}", own, lambda _, values=values: values)
            yield Task(case, method, ALL_SEEDS)
