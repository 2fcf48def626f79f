"""Does it hold as the vocabulary grows?"""

from ml_collections import ConfigDict

from configs.anchor_opt import retrieval


def get_config() -> ConfigDict:
    """Values of the retrieval experiment but for those below."""
    config = retrieval.get_config()
    config.experiment = "sweep_words"
    config.sweep_over = "num_words"  # the value that varies
    config.sweep_values = (1_000, 2_000, 4_000, 8_000)
    config.methods = ("gt", "seed", "bootstrap")
    config.optimise = ("target",)
    config.num_words = 4_000
    config.random_seeds = (0, 1, 2)  # of five: under ten minutes on two cores
    config.when_quick.sweep_values = (800, 1_500)
    return config
