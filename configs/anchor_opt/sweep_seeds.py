"""How many known pairs does it take?"""

from ml_collections import ConfigDict

from configs.anchor_opt import retrieval


def get_config() -> ConfigDict:
    """Values of the retrieval experiment but for those below."""
    config = retrieval.get_config()
    config.experiment = "sweep_seeds"
    config.sweep_over = "num_seeds"  # the value that varies
    config.sweep_values = (0, 1, 2, 3, 5, 10, 15, 30, 100, 300)
    config.methods = ("gt", "seed", "bootstrap")
    config.optimise = ("target",)
    config.num_words = 2_000
    config.random_seeds = (0, 1, 2)  # of five: under ten minutes on two cores
    config.when_quick.sweep_values = (0, 15)
    config.when_quick.start = ConfigDict({"words": (600,)})
    return config
