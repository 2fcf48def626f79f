"""Words as clouds, trained on context windows of reviews and news (Frogner et al. 2019).

  python -m wasserstein_embed.main --config=configs/wasserstein_embed/words.py --workdir=runs/words

Takes an hour and a half on one core. Results: docs/results/wasserstein_embed/words.md.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Every value with its source; "reference" is the public code of the paper."""
    config = ConfigDict()
    config.experiment = "words"  # a file of wasserstein_embed/experiments

    # Data
    # Of texts, 6.5 million words: imdb, rotten_tomatoes (common/data/sets/reviews.py) and bbc
    config.sources = ("imdb", "rotten_tomatoes", "bbc")
    config.num_texts = 0  # texts in random order, 0 for all; a twentieth of them is held out
    config.num_words = 8_000  # the most frequent; reference
    config.subsample = 1e-4  # frequency above which words are subsampled; word2vec: 1e-3 to 1e-5
    config.window = 2  # words to either side

    # Embeddings: clouds of M points in R^k, and vectors of the same M k numbers
    # (and CBOW, trained on the same texts, as a reference)
    config.geometries = ("wasserstein", "euclidean", "cbow")
    config.num_points = 10  # M; reference
    config.dimensions = (2, 3)  # k; reference
    config.hidden_size = 64  # h of one-hot -> h -> M k without activation; reference

    # Training
    config.margin = 1.0  # reference
    # lambda; the reference has .05. Of .05, .2 and .5, .2 has the smallest loss on held-out texts
    # after 3,000 updates; at .05 20 iterations have not converged.
    config.epsilon = 0.2
    config.iterations = 20  # of Sinkhorn; reference
    # Radius of the circle on which the points of clouds start; the reference has 0. Of 0, 2, 4 and
    # 8, 4 has the smallest loss on held-out texts after 3,000 updates, for clouds in the plane.
    config.spread = 0.0
    config.batch_size = 1_024  # positive pairs of an update, and as many negative ones (reference)
    config.updates_per_step = 50  # one record of the log has their means
    config.steps = 800  # 40,000 updates, four passes over the texts
    # Of Adam; decays to zero. Of .003, .01 and .03, .01 has the smallest loss on held-out texts
    # after 3,000 updates, for clouds and for vectors.
    config.learning_rate = 1e-2
    config.checkpoint_every = 40  # steps
    config.random_seeds = (0, 1, 2)

    config.cbow = ConfigDict()  # common/cbow.py; its values in configs/embed_match/trained.py
    config.cbow.negatives = 5
    config.cbow.subsample = 1e-3
    config.cbow.epochs = 5
    config.cbow.segments = 8
    config.cbow.segment_length = 32
    config.cbow.shared_negatives = 32
    config.cbow.copies = 2
    config.cbow.copy_batches = 32
    config.cbow.shards = 10
    config.cbow.learning_rate = 0.025

    # Evaluation
    config.similarity_sets = ("simlex999", "wordsim353", "men", "mturk771", "rare_words")
    config.query_words = ("funny", "actor", "horror", "music", "terrible", "war")
    config.num_neighbours = 8  # shown for each query
    config.figure_words = ("star", "score", "shot", "party", "record", "play")

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.sources = ("imdb",)
    config.when_quick.num_texts = 2_000
    config.when_quick.num_words = 2_000
    config.when_quick.dimensions = (2,)
    config.when_quick.steps = 4
    config.when_quick.checkpoint_every = 2
    config.when_quick.random_seeds = (0,)
    config.when_quick.cbow = ConfigDict({"epochs": 1, "shards": 2})
    return config
