"""What starts the bootstrap where no pair is known?"""

from ml_collections import ConfigDict

from configs.anchor_opt import retrieval


def get_config() -> ConfigDict:
    """Values of the retrieval experiment but for those below."""
    config = retrieval.get_config()
    config.experiment = "starts"
    config.sweep_over = "start.name"  # the value that varies
    config.sweep_values = (
        "gromov",
        "annealed",
        "profiles",
        "faq",
        "wasserstein_procrustes",
        "clusters",
    )
    config.methods = ("bootstrap",)
    config.optimise = ("target",)
    config.num_seeds = 0
    config.num_words = 2_000
    config.random_seeds = (0, 1, 2)  # of five: under ten minutes on two cores
    config.start.anneal = (0.06, 0.04, 0.03, 0.025, 0.02)  # of 'annealed': epsilon
    config.start.anneal_cosine = (0.1, 0.07, 0.05, 0.03)  # of 'wasserstein_procrustes': epsilon
    config.start.anneal_steps = 15  # of both: steps at each epsilon
    config.start.draws = 2  # of 'faq' and 'clusters'
    config.start.clusters = 20  # of 'clusters' (mini-vec2vec: 20)
    config.when_quick.sweep_values = ("gromov", "profiles")
    config.when_quick.start = ConfigDict({"words": (600,)})
    return config
