r"""Entropic regularisation (lambda).

  python -m wasserstein_embed.main --config=configs/wasserstein_embed/sweep_epsilon.py \
    --workdir=runs/sweep_epsilon

Takes about twenty minutes on one core.
"""

from ml_collections import ConfigDict

from configs.wasserstein_embed import sweeps


def get_config() -> ConfigDict:
    """Values of the images experiment except those here and in sweeps.py."""
    return sweeps.over("sweep_epsilon", "distance.epsilon", (0.05, 0.2, 1.0, 5.0))
