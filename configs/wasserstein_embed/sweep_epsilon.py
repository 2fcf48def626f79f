"""How much regularisation (lambda)?"""

from ml_collections import ConfigDict

from configs.wasserstein_embed import sweeps


def get_config() -> ConfigDict:
    """Values of the images experiment but for those here and in sweeps.py."""
    return sweeps.over("sweep_epsilon", "distance.epsilon", (0.05, 0.2, 1.0, 5.0))
