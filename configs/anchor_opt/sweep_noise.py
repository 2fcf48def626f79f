"""Does it survive wrong seeds, and does it say which?"""

from ml_collections import ConfigDict

from configs.anchor_opt import retrieval


def get_config() -> ConfigDict:
    """Values of the retrieval experiment but for those below."""
    config = retrieval.get_config()
    config.experiment = "sweep_noise"
    config.sweep_over = "seed_noise"  # the value that varies
    config.sweep_values = (0.0, 0.1, 0.3, 0.5)
    config.methods = ("gt", "seed", "bootstrap")
    config.optimise = ("target",)
    config.num_words = 2_000
    config.random_seeds = (0, 1, 2)  # of five: under ten minutes on two cores
    config.when_quick.sweep_values = (0.0, 0.3)
    config.num_seeds = 30  # so that 10% is 3
    return config
