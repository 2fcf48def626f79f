"""Figure 6 of the poster: pairs of embeddings put together."""

from ml_collections import ConfigDict

from configs.embed_match import trained


def get_config() -> ConfigDict:
    """Values with their source; those of the embeddings stand in configs/embed_match/trained.py."""
    config = trained.embeddings()
    config.experiment = "ensemble"  # a name of embed_match/experiments.py
    config.embeddings = ("C1", "C2", "G1", "G2", "LSTM", "glove")  # poster
    config.tasks = ("sentiment",)  # poster; news as well where wanted
    config.inverse_penalty = 100.0  # C of logistic regression
    config.random_seeds = (0, 1, 2, 3, 4)  # of the texts trained and tested on

    config.when_quick.embeddings = ("C1", "G1", "glove")
    config.when_quick.random_seeds = (0, 1)
    return config
