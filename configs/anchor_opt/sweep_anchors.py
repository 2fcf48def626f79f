"""How many anchors does a relative space need?

  python -m anchor_opt.main --config=configs/anchor_opt/sweep_anchors.py --workdir=runs/sweep

Takes 3 minutes on one core. Between two layers of one model (--config.source=minilm
--config.target=minilm_input), expected MRR of the bootstrap .81 with 15 anchors, .99 with 300.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import sweeps


def get_config() -> ConfigDict:
    """Values of the retrieval experiment except for those here and in sweeps.py."""
    config = sweeps.over("num_anchors", (15, 50, 100, 300, 1_000), quick=(50, 300))
    config.experiment = "sweep_anchors"
    return config
