"""Words as clouds, trained on context windows of movie reviews (Frogner et al. 2019).

  python -m wasserstein_embed.main --config=configs/wasserstein_embed/words.py --workdir=runs/words

Takes five minutes on one core. Expected rank correlation with GloVe's cosine similarities: .21 for
clouds in the plane, .30 for vectors of as many numbers.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Every value with its source; "reference" is the public code of the paper."""
    config = ConfigDict()
    config.experiment = "words"  # a name of wasserstein_embed/experiments.py

    # Data
    config.dataset = "imdb"  # or rotten_tomatoes, of common/data/reviews.py
    config.num_texts = 25_000  # the first ones, negative and positive alternately
    config.num_words = 8_000  # the most frequent; reference
    config.subsample = 1e-4  # frequency above which words are subsampled; word2vec: 1e-3 to 1e-5
    config.window = 2  # words to either side

    # Embeddings: clouds of M points in R^k, and vectors of the same M k numbers
    config.geometries = ("wasserstein", "euclidean")
    config.num_points = 10  # M; reference
    config.dimensions = (2, 3)  # k; reference
    config.hidden_size = 64  # h of one-hot -> h -> M k without activation; reference

    # Training
    config.margin = 1.0  # reference
    config.epsilon = 0.05  # lambda; reference
    config.iterations = 20  # of Sinkhorn; reference
    config.batch_size = 1_024  # positive pairs of an update, and as many negative ones (reference)
    config.updates_per_step = 50  # one record of the log has their means
    config.steps = 120  # two to three passes over the texts
    config.learning_rate = 3e-3  # of Adam
    config.checkpoint_every = 20  # steps
    config.random_seeds = (0,)

    # Evaluation
    config.reference_space = "glove"  # for the gold similarities: glove, glove100, word2vec, minilm
    config.num_compared_pairs = 20_000  # random pairs of words
    config.query_words = ("funny", "actor", "horror", "music", "terrible", "war")
    config.num_neighbours = 8  # shown for each query
    config.figure_words = ("star", "score", "shot", "kid", "french", "bond")

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.num_texts = 2_000
    config.when_quick.num_words = 2_000
    config.when_quick.dimensions = (2,)
    config.when_quick.steps = 4
    config.when_quick.num_compared_pairs = 2_000
    return config
