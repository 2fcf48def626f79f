"""Words as clouds and as vectors of equal size: human judgements, nearest words, densities."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from ml_collections import ConfigDict

from common import cbow
from common.errors import check_choice, check_count
from common.files import read_arrays, write_arrays
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from wasserstein_embed import word_embed, words
from wasserstein_embed.reports import words as report

GEOMETRIES = ("wasserstein", "euclidean", "cbow")
SHOWN = "wasserstein_r2"  # the embedding whose densities are drawn


def clouds_file(task: Task) -> str:
    """File below the run's folder with the clouds of all words."""
    return f"clouds/{task.name}.npz"


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Trains each embedding with each random seed; tables of correlations and nearest words."""
    embeddings = {values.name: values for values in _embeddings(config)}
    chosen = {name: config[name] for name in ("num_texts", "num_words", "subsample", "window")}
    texts = words.read(config.sources, cache, **chosen)
    vocabulary = texts.corpus.words
    check_count("num_neighbours", config.num_neighbours, len(vocabulary) - 1, "other words")
    judged = words.judged_pairs(config.similarity_sets, vocabulary, cache)

    def measure(task: Task) -> tuple[list[Row], dict]:
        values = embeddings[task.method]
        if values.geometry == "cbow":
            own = settings(cbow.Settings, config.cbow, dim=values.size, window=config.window)
            x = words.train_cbow(own, texts, task.seed, work=work, task=task.name)
        else:
            every = config.checkpoint_every
            x = words.train_embedding(
                values, texts, task.seed, checkpoint_every=every, work=work, task=task.name
            )
        write_arrays(work.path / clouds_file(task), {"points": x, "words": vocabulary})
        rows = []
        for name, correlation in words.rank_correlations(x, judged, values).items():
            labels = {"set": name, "num_judged": len(judged[name][1])}
            rows.append(task.row("spearman", correlation, dim=values.size, labels=labels))
        return rows, {}

    fields = {"experiment": config.experiment, "dataset": ", ".join(config.sources)}
    fields |= {"num_items": len(vocabulary), "proxy": True}
    case = Case("words", fields, lambda random_seed: texts)  # only the training is random
    grid = tasks.grid([case], embeddings, config.random_seeds)
    measured = tasks.run(grid, measure, work, arrays=clouds_file)
    rows = results.averaged(measured.rows)
    nearest_words, figures = {}, {}
    for task in grid:
        values, x = embeddings[task.method], read_arrays(work.path / clouds_file(task))["points"]
        nearest = words.nearest_words(
            x, vocabulary, config.query_words, config.num_neighbours, values
        )
        nearest_words[f"Nearest words, {task.name}"] = report.nearest_table(nearest)
        if task.method == SHOWN:
            densities = words.densities(x, vocabulary, config.figure_words, values)
            if densities:
                title = f"{report.title_of(task.method)}, random seed {task.random_seed}"
                figures[task.name] = report.densities_figure(densities, title)
    names = {m: [task.name for task in grid if task.method == m] for m in embeddings}
    figures["held_out"] = report.held_out_figure(work.metrics.records(), names)
    return records.finish(work, rows, report, figures=figures, quoted=nearest_words)


def _embeddings(config: ConfigDict) -> Iterator[word_embed.Settings]:
    for geometry, dimension in itertools.product(config.geometries, config.dimensions):
        check_choice("geometry", geometry, GEOMETRIES)
        yield settings(word_embed.Settings, config, geometry=geometry, dimension=dimension)
