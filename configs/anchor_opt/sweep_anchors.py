"""How many anchors make a good relative space?"""

from ml_collections import ConfigDict

from configs.anchor_opt import retrieval


def get_config() -> ConfigDict:
    """Values of the retrieval experiment but for those below."""
    config = retrieval.get_config()
    config.experiment = "sweep_anchors"
    config.sweep_over = "num_anchors"  # the value that varies
    config.sweep_values = (15, 50, 100, 300, 1_000)
    config.methods = ("gt", "seed", "bootstrap")
    config.optimise = ("target",)
    config.num_words = 2_000
    config.random_seeds = (0, 1, 2)  # of five: under ten minutes on two cores
    config.when_quick.sweep_values = (50, 300)
    return config
