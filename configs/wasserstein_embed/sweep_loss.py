r"""Power of the distances in the contrastive loss.

  python -m wasserstein_embed.main --config=configs/wasserstein_embed/sweep_loss.py \
    --workdir=runs/sweep_loss

Section 4.1 of the report has the power 1, its section 3 and its code have 2. Takes about five
minutes on two cores.
"""

from ml_collections import ConfigDict

from configs.wasserstein_embed import sweeps


def get_config() -> ConfigDict:
    """Values of the images experiment except those here and in sweeps.py."""
    return sweeps.over("sweep_loss", "loss_power", (1.0, 2.0))
