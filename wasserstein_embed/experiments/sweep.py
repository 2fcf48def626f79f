"""The images experiment with one value varied at a time."""

from pathlib import Path

from ml_collections import ConfigDict

from common.run import records, tasks
from common.run.settings import varied, with_value
from common.run.workdir import Workdir
from wasserstein_embed import images
from wasserstein_embed.experiments.images import case_of, measured
from wasserstein_embed.reports import images as report


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Each value of config.vary: tables and a figure of each name."""
    splits = images.read(config.dataset, config.train_split, config.test_split, cache)
    cases = [
        case_of(
            f"{name}={value}",
            with_value(config, name, value),
            splits,
            sweep_over=name,
            sweep_value=value,
        )
        for name, values in varied(config)
        for value in values
    ]
    rows = measured(tasks.grid(cases, config.methods, config.random_seeds), work)
    return records.finish(work, rows, report)
