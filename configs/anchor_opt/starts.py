"""Which start of the bootstrap works without known pairs?

  python -m anchor_opt.main --config=configs/anchor_opt/starts.py --workdir=runs/starts

Takes 18 minutes on one core. Between two layers of one model, minilm and minilm_input, expected
MRR of the bootstrap .99 with gromov and annealed, below .05 with the others. From GloVe to MiniLM's
input embeddings all of them fail.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import ablation


def get_config() -> ConfigDict:
    """Values of the ablation except for those here."""
    config = ablation.get_config()
    config.experiment = "starts"
    config.pairs = ("minilm:minilm_input", "glove:minilm_input")
    config.methods = ("bootstrap",)
    config.num_pairs = 0
    tried = ("gromov", "annealed", "profiles", "faq", "wasserstein_procrustes", "clusters")
    config.vary = (("start.name", tried),)
    config.when_quick.vary = (("start.name", ("gromov", "profiles")),)
    config.when_quick.start = ConfigDict({"rows": (600,)})
    return config
