"""How many known pairs does it take?"""

from ml_collections import ConfigDict

from configs.anchor_opt import sweeps


def get_config() -> ConfigDict:
    """Values of the retrieval experiment but for those here and in sweeps.py."""
    config = sweeps.over("num_seeds", (0, 1, 2, 3, 5, 10, 15, 30, 100, 300), quick=(10, 15))
    config.experiment = "sweep_seeds"
    config.random_seeds = (0, 1)  # a failure takes its minute: three took 15 on one core
    return config
