"""Words as clouds, trained on context windows of real text (Frogner et al. 2019)."""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Values with their source; "reference" is the public code of the paper."""
    config = ConfigDict()
    config.experiment = "words"  # a name of wasserstein_embed/experiments.py

    # Data
    config.dataset = "imdb"  # or rotten_tomatoes, of common/data/reviews.py
    config.num_texts = 25_000  # the first of them, negative and positive in turn
    config.num_words = 8_000  # the most frequent; reference
    config.subsample = 1e-4  # share above which a word is thinned out; word2vec: 1e-3 to 1e-5
    config.window = 2  # words to either side

    # Embeddings: clouds of M points in R^k, and vectors of the same M k numbers
    config.geometries = ("wasserstein", "euclidean")
    config.points = 10  # M; reference
    config.dimensions = (2, 3)  # k; reference
    config.hidden = 64  # reference; one-hot -> 64 -> M k, no activation

    # Training
    config.margin = 1.0  # reference
    config.epsilon = 0.05  # lambda; reference
    config.iterations = 20  # of Sinkhorn; reference
    config.batch = 1_024  # positive pairs of an update, and as many negative ones (reference)
    config.updates = 50  # in a step of the log
    config.steps = 120  # two to three times through the text
    config.learning_rate = 3e-3  # Adam
    config.chunk = 20  # steps between checkpoints
    config.random_seeds = (0,)

    # Report
    config.reference = "glove"  # space of common/data/words.py that similarities are compared with
    config.compared_pairs = 20_000  # of words, at random
    config.query_words = ("funny", "actor", "horror", "music", "terrible", "war")
    config.neighbours = 8
    config.figure_words = ("star", "score", "shot", "kid", "french", "bond")

    config.quick = False  # the whole path on less: these values take the place of those above
    config.when_quick = ConfigDict()
    config.when_quick.num_texts = 2_000
    config.when_quick.num_words = 2_000
    config.when_quick.dimensions = (2,)
    config.when_quick.steps = 4
    config.when_quick.compared_pairs = 2_000
    return config
