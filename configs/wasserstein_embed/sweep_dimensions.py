r"""Number of dimensions of the points.

  python -m wasserstein_embed.main --config=configs/wasserstein_embed/sweep_dimensions.py \
    --workdir=runs/sweep_dimensions

Takes about ten minutes on one core. Training by Euclidean distance uses as many numbers each time.
"""

from ml_collections import ConfigDict

from configs.wasserstein_embed import sweeps


def get_config() -> ConfigDict:
    """Values of the images experiment except those here and in sweeps.py."""
    return sweeps.over("sweep_dimensions", "dimensions", (2, 3, 5))
