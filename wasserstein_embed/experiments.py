"""The experiments: a config becomes typed settings; then data -> method -> metrics -> report."""

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from ml_collections import ConfigDict
from tqdm import tqdm

from common import cbow
from common.errors import UserError
from common.run import results, train
from common.run.results import Row
from common.run.settings import settings, sweep
from common.run.workdir import Workdir, read_arrays, write_arrays
from wasserstein_embed import (
    graphs,
    graphs_report,
    images,
    images_report,
    metric_embed,
    siamese,
    word_embed,
    words,
    words_report,
)
from wasserstein_embed.cloud import Distance


def graph_embeddings(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Distortion of shortest paths for each recipe, geometry and size, over all graphs."""
    del cache  # the graphs are drawn at random
    _check("graph", [config.graph], graphs.GENERATORS)
    _check("geometry", config.methods, [*metric_embed.VECTOR_DISTANCES, "wasserstein"])
    _check("recipe", config.recipes, ["published", "tuned"])
    options = config.graph_options[config.graph].to_dict()
    random_seeds = range(config.num_graphs)
    drawn = [graphs.draw(config.graph, config.num_nodes, options, s) for s in random_seeds]
    data = graphs.all_pairs(drawn)
    published = (config.graph, config.num_nodes, options) == ("scale_free", 64, {"m": 2})
    reference = graphs_report.reference if published else lambda name, size: None
    measured = []
    for recipe, name, values in tqdm(list(_graph_trainings(config)), unit="training"):
        size, iterations = values.shape[0], config.measure_iterations[recipe]
        part = f"{recipe}-{name}-{size}"
        loop = {"checkpoint_every": config.checkpoint_every, "work": work, "part": part}
        arguments = values, data, len(drawn), iterations
        compute = partial(graphs.train_and_measure, *arguments, **loop)
        shared = {
            "method": name,
            "dim": int(np.prod(values.shape)),
            "paper_value": reference(name, size) if recipe == "published" else None,
            "labels": {"recipe": recipe, "size": size},
        }
        for random_seed, value in enumerate(work.part(part, compute)):
            measured.append(shared | {"random_seed": random_seed, "value": value})
        train.forget_checkpoints(work, part)
    rows = results.summarise(
        measured,
        experiment=config.experiment,
        dataset=f"{config.graph}, {config.num_nodes} nodes",
        metric="distortion",
        num_items=config.num_nodes,
    )
    text = _document("Shortest paths of graphs", graphs_report, rows)
    return results.finish(work, rows, text, {"distortion": graphs_report.figure(rows)})


def _graph_trainings(config: ConfigDict) -> Iterator[tuple[str, str, metric_embed.Settings]]:
    """Recipe, name of the method and settings of each training."""
    for recipe, geometry in itertools.product(config.recipes, config.methods):
        if geometry not in config[recipe]:
            continue
        if geometry == "wasserstein":
            sizes = itertools.product(config.cloud_dimensions, config.points)
            shapes, steps = {(m, k): f"wasserstein_r{k}" for k, m in sizes}, config.steps.clouds
        else:
            shapes, steps = {(d,): geometry for d in config.dimensions}, config.steps.vectors
        for shape, name in shapes.items():
            given = {"geometry": geometry, "shape": shape, "steps": steps}
            yield recipe, name, settings(metric_embed.Settings, config[recipe][geometry], **given)


def image_embeddings(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Siamese training by Sinkhorn and other distances: kNN accuracy, Figures 1 to 3."""
    names = (config.train_split, config.test_split)
    splits = images.read(config.dataset, *names, cache)
    rows = _image_rows(config, work, splits)
    parts = {m: [f"seed{s}-{m}" for s in config.random_seeds] for m in config.methods}
    first = {m: read_arrays(work.path / images.clouds_file(runs[0])) for m, runs in parts.items()}
    clouds = {method: images_report.in_plane(found["points"]) for method, found in first.items()}
    figures = {
        "training": images_report.training_figure(work.records(), parts, config.margin),
        "clouds": images_report.clouds_figure(clouds, splits.test),
        "nine": images_report.nine_figure(clouds, splits.test, config.figure_class),
    }
    text = _document("Images as clouds", images_report, rows)
    return results.finish(work, rows, text, figures)


def image_sweep(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """The image experiment with each of config.sweep_values as config.sweep_over."""
    names = (config.train_split, config.test_split)
    splits = images.read(config.dataset, *names, cache)
    rows = []
    for value, point in sweep(config):
        swept = {"sweep_over": config.sweep_over, "sweep_value": value}
        rows += _image_rows(point, work, splits, f"{value}-", **swept)
    text = _document(f"Images as clouds over {config.sweep_over}", images_report, rows)
    return results.finish(work, rows, text, {"sweep": images_report.sweep_figure(rows)})


def _image_rows(
    config: ConfigDict, work: Workdir, splits: images.Splits, prefix: str = "", **shared
) -> list[Row]:
    """Trains and measures each method with each random seed."""
    _check("method", config.methods, ["sinkhorn", "euclidean", "cosine"])
    shape = splits.train.images.shape[1:]
    names = "num_neighbours", "num_test_pairs", "evaluate_every"
    options = {name: config[name] for name in names}
    sinkhorn = settings(Distance, config.distance)
    reported = (config.num_points, config.dimensions) == (3, 2)
    reported &= config.dataset in images_report.REPORTED_FOR
    measured = []
    bar = tqdm(list(itertools.product(config.random_seeds, config.methods)), unit="part")
    for random_seed, method in bar:
        part = f"{prefix}seed{random_seed}-{method}"
        bar.set_description(part)
        cosine = method == "cosine"
        chosen = {
            "network": settings(siamese.Network, config, image_shape=shape, unit_norm=cosine),
            "distance": sinkhorn if method == "sinkhorn" else None,
            "temperature": config.temperature if cosine else None,
        }
        training = settings(siamese.Training, config, **chosen)
        arguments = training, splits, random_seed, sinkhorn
        compute = partial(images.train_and_measure, *arguments, **options, work=work, part=part)
        for one in work.part(part, compute, images.clouds_file(part)):
            euclidean = one.get("labels", {}).get("neighbours_by") == "euclidean"
            paper = images_report.REPORTED if euclidean and reported and not cosine else {}
            measured.append(one | paper | {"method": method, "random_seed": random_seed})
        train.forget_checkpoints(work, part)
    return results.summarise(
        measured,
        experiment=config.experiment,
        dataset=config.dataset,
        num_items=len(splits.test.labels),
        dim=config.dimensions,
        proxy=config.dataset != "mnist",
        labels={
            "num_points": config.num_points,
            "num_train": len(splits.train.labels),
            "train_split": splits.train.split,
            "test_split": splits.test.split,
        },
        **shared,
    )


def word_embeddings(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Words as clouds and as vectors of equal size: human judgements, nearest words, densities."""
    _check("geometry", config.geometries, ["wasserstein", "euclidean", "cbow"])
    sizes = {"num_texts": config.num_texts, "num_words": config.num_words}
    options = sizes | {"subsample": config.subsample, "window": config.window}
    texts = words.read(config.sources, cache, **options)
    vocabulary = texts.whole.words
    judged = words.judged_pairs(config.similarity_sets, vocabulary, cache)

    def compute(values: word_embed.Settings, random_seed: int, part: str) -> dict:
        loop = {"work": work, "part": part}
        if values.geometry == "cbow":
            size = {"dim": values.num_points * values.dimension, "window": config.window}
            chosen = settings(cbow.Settings, config.cbow, **size)
            x = words.train_cbow(chosen, texts, random_seed, **loop)
        else:
            loop["checkpoint_every"] = config.checkpoint_every
            x = words.train_embedding(values, texts, random_seed, **loop)
        write_arrays(work.path / words.points_file(part), {"points": x, "words": vocabulary})
        queries, number = config.query_words, config.num_neighbours
        figure_words = config.figure_words if values.name == "wasserstein_r2" else ()
        return {
            "spearman": words.rank_correlations(x, judged, values),
            "neighbours": words.nearest_words(x, vocabulary, queries, number, values),
            "densities": words.densities(x, vocabulary, figure_words, values),
        }

    measured, neighbours, figures, parts = [], {}, {}, {}
    tasks = list(itertools.product(config.geometries, config.dimensions, config.random_seeds))
    for geometry, dimension, random_seed in tqdm(tasks, unit="training"):
        values = settings(word_embed.Settings, config, geometry=geometry, dimension=dimension)
        part = f"{values.name}-seed{random_seed}"
        arguments = values, random_seed, part
        result = work.part(part, partial(compute, *arguments), words.points_file(part))
        train.forget_checkpoints(work, part)
        parts.setdefault(values.name, []).append(part)
        for name, value in result["spearman"].items():
            labels = {"set": name, "num_judged": len(judged[name].scores)}
            fields = {"method": values.name, "dim": config.num_points * dimension, "labels": labels}
            measured.append(fields | {"random_seed": random_seed, "value": value})
        nearest = [(query, ", ".join(near)) for query, near in result["neighbours"].items()]
        neighbours[f"Nearest words, {part}"] = results.markdown(("Word", "Nearest first"), nearest)
        if result["densities"]:
            figures[f"words-{part}"] = words_report.densities_figure(result["densities"], part)
    figures["held_out"] = words_report.held_out_figure(work.records(), parts)
    rows = results.summarise(
        measured,
        experiment=config.experiment,
        dataset=", ".join(config.sources),
        metric="spearman",
        num_items=len(vocabulary),
        proxy=True,
    )
    text = _document("Words as clouds", words_report, rows, neighbours)
    return results.finish(work, rows, text, figures)


def _check(kind: str, given: Sequence[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise UserError(f"There is no {kind} '{name}': choose one of {', '.join(known)}.")


def _document(title: str, module, rows: list[Row], more: dict[str, str] | None = None) -> str:
    """The table.md of a run: a title, a description and titled tables of a report module."""
    tables = module.tables(rows) | (more or {})
    parts = [f"**{name}**\n\n{table}" for name, table in tables.items()]
    return "\n\n".join([f"## {title}", module.describe(rows), *parts])


EXPERIMENTS = {
    "graphs": graph_embeddings,
    "images": image_embeddings,
    "words": word_embeddings,
    "sweep_points": image_sweep,
    "sweep_loss": image_sweep,
    "sweep_dimensions": image_sweep,
    "sweep_epsilon": image_sweep,
}
