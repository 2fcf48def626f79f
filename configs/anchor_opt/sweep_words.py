"""Does it hold as the vocabulary grows?"""

from ml_collections import ConfigDict

from configs.anchor_opt import sweeps


def get_config() -> ConfigDict:
    """Values of the retrieval experiment but for those here and in sweeps.py."""
    config = sweeps.over("num_words", (1_000, 2_000, 4_000, 8_000), quick=(800, 1_000))
    config.experiment = "sweep_words"
    config.num_words = 4_000
    return config
