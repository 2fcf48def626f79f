"""Figure 6 of the poster: ensembles of pairs of embeddings.

  python -m embed_match.main --config=configs/embed_match/ensemble.py --workdir=runs/ensemble

Results: docs/results/embed_match/ensemble.md.
"""

from ml_collections import ConfigDict

from configs.embed_match import trained


def get_config() -> ConfigDict:
    """Every value with its source; the embeddings are in configs/embed_match/trained.py."""
    config = trained.embeddings()
    config.experiment = "ensemble"  # a module of embed_match/experiments
    config.embeddings = ("C1", "C2", "G1", "G2", "LSTM", "glove")  # poster
    config.tasks = ("sentiment",)  # poster; news is available as well
    config.inverse_penalty = 100.0  # C of scikit-learn's LogisticRegression

    config.when_quick.embeddings = ("C1", "G1", "glove")
    return config
