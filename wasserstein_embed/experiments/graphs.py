"""Shortest paths of graphs: the distortion of each recipe, geometry and size, over all graphs."""

import itertools
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ml_collections import ConfigDict

from common.errors import check_choice, check_count
from common.progress import progress_bar
from common.run import records, results, train
from common.run.results import Row
from common.run.settings import settings
from common.run.workdir import Workdir
from wasserstein_embed import graphs, metric_embed
from wasserstein_embed.reports import graphs as report

GEOMETRIES = (*metric_embed.VECTOR_DISTANCES, "wasserstein")
RECIPES = ("published", "tuned")


class Training(NamedTuple):
    """Embeddings of one geometry and size. It embeds all graphs, each with its own random seed."""

    recipe: str
    method: str  # the geometry, and for clouds the dimension of their points
    settings: metric_embed.Settings

    @property
    def size(self) -> int:
        """Dimension of a vector, or number of points of a cloud."""
        return self.settings.shape[0]

    @property
    def name(self) -> str:
        """Of its result, logs and checkpoints in the run's folder."""
        return f"{self.recipe}-{self.method}-{self.size}"


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Trains all embeddings, and returns tables of their distortion."""
    del cache  # the graphs are random
    chosen = list(trainings(config))
    check_count("num_graphs", config.num_graphs)
    check_count("num_nodes", config.num_nodes, least=2)
    options = dict(config.graph_options.get(config.graph, {}))
    samples = [
        graphs.sample(config.graph, config.num_nodes, options, random_seed)
        for random_seed in range(config.num_graphs)
    ]
    pairs = graphs.all_pairs(samples)
    fields = {
        "experiment": config.experiment,
        "dataset": f"{config.graph}, {config.num_nodes} nodes",
        "metric": "distortion",
        "num_items": config.num_nodes,
        "quick": work.quick,
    }
    is_published = (config.graph, config.num_nodes, options) == report.REFERENCE_GRAPHS
    rows = []
    for training in progress_bar(chosen, unit="training"):
        recipe, method, size = training.recipe, training.method, training.size
        compute = partial(
            graphs.distortions,
            training.settings,
            pairs,
            num_graphs=config.num_graphs,
            measure_iterations=config.measure_iterations[recipe],
            checkpoint_every=config.checkpoint_every,
            work=work,
            task=training.name,
        )
        distortions = work.part(training.name, compute)
        train.forget_checkpoints(work, training.name)
        has_reference = is_published and recipe == "published"
        reference = report.reference(method, size) if has_reference else None
        rows += [
            Row(
                **fields,
                method=method,
                dim=math.prod(training.settings.shape),
                paper_value=reference,
                labels={"recipe": recipe, "size": size},
                random_seed=random_seed,
                mean=distortion,
            )
            for random_seed, distortion in enumerate(distortions)
        ]
    rows = results.averaged(rows)
    table = results.joined(report.tables(rows))
    return records.finish(work, rows, table, {"distortion": report.figure(rows)})


def trainings(config: ConfigDict) -> Iterator[Training]:
    """The trainings of all recipes, and for each of all geometries and sizes.

    Raises:
      UserError: an unknown recipe or geometry.
    """
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
            values = settings(
                metric_embed.Settings,
                config[recipe][geometry],
                geometry=geometry,
                shape=shape,
                steps=steps,
            )
            yield Training(recipe, method, values)
