"""Does it survive wrong seeds, and does it say which?"""

from ml_collections import ConfigDict

from configs.anchor_opt import sweeps


def get_config() -> ConfigDict:
    """Values of the retrieval experiment but for those here and in sweeps.py."""
    config = sweeps.over("seed_noise", (0.0, 0.1, 0.3, 0.5), quick=(0.0, 0.3))
    config.experiment = "sweep_noise"
    config.num_seeds = 30  # so that 10% is 3
    return config
