"""The experiments, and the embeddings that a config names in each random run."""

from collections.abc import Iterable
from pathlib import Path

from ml_collections import ConfigDict

from common.errors import check_choice
from common.run.settings import settings
from common.run.workdir import Workdir
from embed_match.embeddings import SETTINGS, Model, RandomRuns, load, read

SEED_STEP = 10  # between the random seeds of a model in two random runs


def models(config: ConfigDict, random_seed: int = 0) -> dict[str, Model]:
    """The models of `config.models`, with their settings in a random run; or a UserError."""
    by_name = {}
    for name, own in config.models.items():
        own = dict(own)
        kind, init_from = own.pop("kind"), own.pop("init_from", None)
        check_choice(f"kind of {name}", kind, SETTINGS)
        seed = own.pop("random_seed") + SEED_STEP * random_seed
        values = settings(SETTINGS[kind], config[kind], **own)
        by_name[name] = Model(kind=kind, settings=values, random_seed=seed, init_from=init_from)
    return by_name


def random_runs(config: ConfigDict, names: Iterable[str], work: Workdir, cache: Path) -> RandomRuns:
    """Embeddings by name (see `load`) in each random run; pretrained ones are the same in all.

    The values of the config are those of configs/embed_match/trained.py.
    """
    names, known = list(dict.fromkeys(names)), models(config)
    text = read(config.dataset, config.num_texts, config.num_words, known, cache)
    trained = [name for name in names if name in known]
    pretrained = load([name for name in names if name not in known], known, text, work, cache)
    spaces = {}
    for random_seed in config.random_seeds:
        of_run = pretrained | load(trained, models(config, random_seed), text, work, cache)
        spaces[random_seed] = {name: of_run[name] for name in names}
    return RandomRuns(known, text, spaces)
