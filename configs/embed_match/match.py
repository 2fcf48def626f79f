"""Table 1 of the poster: pairs of embeddings aligned and matched."""

from ml_collections import ConfigDict

from configs.embed_match import trained


def get_config() -> ConfigDict:
    """Values with their source; those of the embeddings stand in configs/embed_match/trained.py."""
    config = trained.embeddings()
    config.experiment = "match"  # a name of embed_match/experiments.py

    # The first four: the poster's. Then its pretrained GloVe against each; LSTM10: see trained.py
    config.pairs = (
        "C1-C2",
        "G1-G2",
        "C1-G1",
        "LSTM-C1",
        "LSTM10-C1",
        "C1-glove",
        "C2-glove",
        "G1-glove",
        "G2-glove",
        "LSTM-glove",
    )

    # Transport. The exact matching has no values
    config.epsilon = 0.01  # entropic, in units of 1 - cos
    config.iterations = 50  # at most
    config.tolerance = 0.01  # L1 error of the marginals at which it ends before

    config.when_quick.pairs = ("C1-C2", "C1-G1", "LSTM-C1")
    return config
