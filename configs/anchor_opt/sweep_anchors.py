"""How many anchors make a good relative space?"""

from ml_collections import ConfigDict

from configs.anchor_opt import sweeps


def get_config() -> ConfigDict:
    """Values of the retrieval experiment but for those here and in sweeps.py."""
    config = sweeps.over("num_anchors", (15, 50, 100, 300, 1_000), quick=(50, 300))
    config.experiment = "sweep_anchors"
    return config
