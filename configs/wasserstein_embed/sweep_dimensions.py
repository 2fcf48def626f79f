"""In how many dimensions? The Euclidean twin has as many numbers each time."""

from ml_collections import ConfigDict

from configs.wasserstein_embed import sweeps


def get_config() -> ConfigDict:
    """Values of the images experiment but for those here and in sweeps.py."""
    return sweeps.over("sweep_dimensions", "dimensions", (2, 3, 8))
