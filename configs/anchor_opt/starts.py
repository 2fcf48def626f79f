"""Which start of the bootstrap works without known pairs?

  python -m anchor_opt.main --config=configs/anchor_opt/starts.py --workdir=runs/starts

Takes 9 minutes on one core. Between two layers of one model (--config.source=minilm
--config.target=minilm_input), expected MRR of the bootstrap .99 with gromov and annealed, below .05
with the others. From GloVe to MiniLM's input embeddings (--config.target=minilm_input) all of them
fail.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import sweeps


def get_config() -> ConfigDict:
    """Values of the retrieval experiment except for those here and in sweeps.py."""
    tried = ("gromov", "annealed", "profiles", "faq", "wasserstein_procrustes", "clusters")
    config = sweeps.over("start.name", tried, quick=("gromov", "profiles"))
    config.experiment = "starts"
    config.methods = ("bootstrap",)
    config.num_pairs = 0
    config.when_quick.start = ConfigDict({"rows": (600,)})
    return config
