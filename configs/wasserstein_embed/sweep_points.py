r"""Number of points of an image.

  python -m wasserstein_embed.main --config=configs/wasserstein_embed/sweep_points.py \
    --workdir=runs/sweep_points

Takes about twenty minutes on one core. Training by Euclidean distance uses as many numbers.
"""

from ml_collections import ConfigDict

from configs.wasserstein_embed import sweeps


def get_config() -> ConfigDict:
    """Values of the images experiment except those here and in sweeps.py."""
    return sweeps.over("sweep_points", "num_points", (1, 2, 3, 5, 10))
