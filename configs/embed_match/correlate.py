"""Figure 5 of the poster: similarity of embeddings against their difference downstream."""

from ml_collections import ConfigDict

from configs.embed_match import trained


def get_config() -> ConfigDict:
    """Values with their source; those of the embeddings stand in configs/embed_match/trained.py."""
    config = trained.embeddings()
    config.experiment = "correlate"  # a name of embed_match/experiments.py
    trained_here = ("C1", "C2", "G1", "G2", "LSTM", "LSTM10")
    config.embeddings = (*trained_here, "glove", "minilm", "minilm_input")
    config.tasks = ("sentiment", "news")  # poster
    config.inverse_penalty = 100.0  # C of logistic regression
    config.random_seeds = (0, 1, 2, 3, 4)  # of the texts trained and tested on
    config.resamples = 2_000  # of the embeddings, for the interval

    config.when_quick.embeddings = ("C1", "C2", "G1", "glove")
    config.when_quick.random_seeds = (0, 1)
    return config
