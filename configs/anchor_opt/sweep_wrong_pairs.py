"""Does the method tolerate wrong pairs, and does it detect them?

  python -m anchor_opt.main --config=configs/anchor_opt/sweep_wrong_pairs.py --workdir=runs/sweep

Takes 3 minutes on one core. Between two layers of one model (--config.source=minilm
--config.target=minilm_input), expected MRR of the bootstrap .99 for each fraction of wrong pairs.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import sweeps


def get_config() -> ConfigDict:
    """Values of the retrieval experiment except for those here and in sweeps.py."""
    config = sweeps.over("wrong_pair_fraction", (0.0, 0.1, 0.3, 0.5), quick=(0.0, 0.3))
    config.experiment = "sweep_wrong_pairs"
    config.num_pairs = 30  # so that 10% are 3 pairs
    return config
