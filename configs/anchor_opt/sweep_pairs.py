"""How many known pairs are needed?

  python -m anchor_opt.main --config=configs/anchor_opt/sweep_pairs.py --workdir=runs/sweep

Takes 15 minutes on one core with --config.random_seeds=0,1,2. Between two layers of one model
(--config.source=minilm --config.target=minilm_input), expected MRR of the bootstrap .99 for each
number of pairs; from GloVe to MiniLM's input embeddings (--config.target=minilm_input) .90 from ten
pairs on, none below.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import sweeps


def get_config() -> ConfigDict:
    """Values of the retrieval experiment except for those here and in sweeps.py."""
    config = sweeps.over("num_pairs", (0, 1, 2, 3, 5, 10, 15, 30, 100, 300), quick=(10, 15))
    config.experiment = "sweep_pairs"
    config.random_seeds = (0, 1)  # a run that fails takes a minute
    return config
