"""Spaces that share a part of their items in unknown order, and how often failure is reported.

  python -m frontier.main --config=configs/frontier/overlap.py --workdir=runs/overlap

The two spaces have 2,000 items each, of which between all and a half are the same. Neither has an
order that a method could use. Beside the curves of MRR the run counts the searches of the bootstrap
that have failed without saying so, or have succeeded and are reported as failed; none of the pairs
was used to choose a constant of the method.
"""

import dataclasses

from ml_collections import ConfigDict

from configs.anchor_opt import shared
from frontier.methods import Settings


def get_config() -> ConfigDict:
    """Values with their source; those of the task and of the methods are in shared.py."""
    config = ConfigDict({**shared.task(), **shared.methods()})
    config.experiment = "overlap"
    config.pairs = (
        "glove100:word2vec",
        "word2vec:minilm_input",
        "glove:word2vec",
        "wordllama_sentences:minilm_sentences",
        "glove:minilm_input",
    )
    config.num_rows = 2_000  # items of each space
    config.shared = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)  # fraction of them that are the same items
    config.known_pairs = ()  # numbers of them, instead of num_pairs, with all items shared
    config.noisy_space = "word2vec"  # of which noisy copies are made
    config.noise = (0.8, 1.2, 1.6)  # see common.spaces.space_pairs.noisy_isometry
    config.optimise = ("target",)
    config.methods = ("gt", "seed", "algorithm1", "bootstrap", "lstsq_truth")
    config.random_seeds = (0, 1, 2)
    for name in ("mini_vec2vec", "rosetta", "goat"):  # the values are commented where they stand
        config[name] = ConfigDict(dataclasses.asdict(getattr(Settings(), name)))
    config.when_quick = ConfigDict()
    config.when_quick.pairs = ("glove100:word2vec",)
    config.when_quick.num_rows = 500
    config.when_quick.shared = (1.0,)
    config.when_quick.noise = (0.2,)
    config.when_quick.random_seeds = (0,)
    return config
