"""Figure 5 of the poster: distance of embeddings against their difference in accuracy.

  python -m embed_match.main --config=configs/embed_match/correlate.py --workdir=runs/correlate

Results: docs/results/embed_match/correlate.md.
"""

from ml_collections import ConfigDict

from configs.embed_match import trained


def get_config() -> ConfigDict:
    """Every value with its source; the embeddings are in configs/embed_match/trained.py."""
    config = trained.embeddings()
    config.experiment = "correlate"  # a module of embed_match/experiments
    trained_here = ("C1", "C2", "G1", "G2", "LSTM")
    config.embeddings = (*trained_here, "glove", "minilm", "minilm_input")
    config.tasks = ("sentiment", "news")  # poster
    config.inverse_penalty = 100.0  # C of scikit-learn's LogisticRegression
    config.bootstrap_resamples = 2_000  # of the embeddings, for the interval

    config.when_quick.embeddings = ("C1", "C2", "G1", "glove")
    return config
