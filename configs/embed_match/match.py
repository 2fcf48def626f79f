"""Table 1 of the poster: pairs of embeddings aligned and matched.

  python -m embed_match.main --config=configs/embed_match/match.py --workdir=runs/match

Takes 7 minutes on one core once the embeddings are in the cache directory, and a minute or two for
each training of CBOW, GloVe or LSTM. Results: docs/results/embed_match/match.md.
"""

from ml_collections import ConfigDict

from configs.embed_match import trained


def get_config() -> ConfigDict:
    """Every value with its source; the embeddings are in configs/embed_match/trained.py."""
    config = trained.embeddings()
    config.experiment = "match"  # a module of embed_match/experiments

    # The poster's four pairs, and each model with pretrained GloVe.
    config.pairs = (
        "C1-C2",
        "G1-G2",
        "C1-G1",
        "LSTM-C1",
        "C1-glove",
        "G1-glove",
        "LSTM-glove",
    )
    # Words that are compared by their rank in the order of frequency, such as 1-5000,15001-20000;
    # all words if empty.
    config.ranks = ()

    # Entropic transport; exact transport needs no values.
    config.epsilon = 0.01  # in units of the cost 1 - cos
    config.max_iterations = 50
    config.tolerance = 0.01  # L1 error of the marginals at which the iterations stop

    config.when_quick.pairs = ("C1-C2", "C1-G1", "LSTM-C1")
    return config
