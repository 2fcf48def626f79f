"""What starts the bootstrap where no pair is known?"""

from ml_collections import ConfigDict

from configs.anchor_opt import sweeps


def get_config() -> ConfigDict:
    """Values of the retrieval experiment but for those here and in sweeps.py."""
    tried = ("gromov", "annealed", "profiles", "faq", "wasserstein_procrustes", "clusters")
    config = sweeps.over("start.name", tried, quick=("gromov", "profiles"))
    config.experiment = "starts"
    config.methods = ("bootstrap",)
    config.num_seeds = 0
    config.start.anneal = (0.06, 0.04, 0.03, 0.025, 0.02)  # of 'annealed': epsilon
    config.start.anneal_cosine = (0.1, 0.07, 0.05, 0.03)  # of 'wasserstein_procrustes': epsilon
    config.start.anneal_steps = 15  # of both: steps at each epsilon
    config.start.draws = 2  # of 'faq' and 'clusters'
    config.start.clusters = 20  # of 'clusters' (mini-vec2vec: 20)
    config.when_quick.start = ConfigDict({"words": (600,)})
    return config
