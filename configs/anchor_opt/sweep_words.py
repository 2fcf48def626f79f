"""Does the method depend on the size of the vocabulary?

  python -m anchor_opt.main --config=configs/anchor_opt/sweep_words.py --workdir=runs/sweep

Takes 7 minutes on one core. Between two layers of one model (--config.source=minilm
--config.target=minilm_input), expected MRR of the bootstrap from .99 (1,000 words) to .985 (8,000).
"""

from ml_collections import ConfigDict

from configs.anchor_opt import sweeps


def get_config() -> ConfigDict:
    """Values of the retrieval experiment except for those here and in sweeps.py."""
    config = sweeps.over("num_words", (1_000, 2_000, 4_000, 8_000), quick=(800, 1_000))
    config.experiment = "sweep_words"
    config.num_words = 4_000
    return config
