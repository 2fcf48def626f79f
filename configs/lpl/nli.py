"""Alignment as a regulariser for NLI: Figures 3 to 5, Table 3 of the locality preserving loss."""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Values with their source."""
    config = ConfigDict()
    config.experiment = "nli"  # the function of lpl/experiments.py

    # Data
    config.datasets = ("bbc_pairs", "synthetic")
    config.encoder = "minilm"
    config.max_pieces = 64
    config.max_train = 3_000
    config.max_validation = 600
    config.max_test = 1_000

    # The task
    config.sizes = (250, 500, 1_000, 2_000)
    config.split = "test"
    config.random_seeds = (0, 1, 2)
    config.methods = ("hypothesis_only", "baseline", "map_only", "mse", "mse_lpl")

    config.map = "mlp"
    config.map_hidden = 128
    config.hidden = 256
    config.batch = 64
    config.updates = 300
    config.delta = ConfigDict({"entailment": 100.0, "contradiction": 1.0, "neutral": -5.0})
    config.floor = -10.0
    config.hypothesis_only = ConfigDict({"learning_rate": 1e-2})
    config.baseline = ConfigDict({"learning_rate": 1e-2})
    config.map_only = ConfigDict({"learning_rate": 3e-3})
    config.mse = ConfigDict({"learning_rate": 1e-2, "gamma": 0.1})
    config.mse_lpl = ConfigDict({"learning_rate": 1e-2, "gamma": 0.1})
    config.k = 5
    config.regularisation = 1e-3
    config.num_neighbours = 2
    config.quick = False
    config.when_quick = ConfigDict()
    return config
