"""Two sentence encoders: aligned, matched and ensembled, as the poster does with word embeddings.

  python -m embed_match.main --config=configs/embed_match/sentences.py --workdir=runs/sentences

Takes a few minutes on one core, most of them for encoding the reviews once by MiniLM.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Every value with its source; the poster names no sentence encoder and states no value."""
    config = ConfigDict()
    config.experiment = "sentences"  # a module of embed_match/experiments
    config.datasets = ("bbc", "imdb")  # headlines in five classes; reviews in two
    config.num_texts = 2_000  # of each, which one core encodes in minutes; half are training texts
    config.encoders = ("minilm", "wordllama")  # names or a folder (common/encoders/texts.py)
    config.max_pieces = 128  # word pieces of a text, special ones included; the rest is cut off
    config.inverse_penalty = 1.0  # C of LogisticRegression: its default, no other tried
    config.random_seeds = (0, 1, 2, 3, 4)  # of the subsets of training and test texts

    # Entropic transport, as in match.py
    config.epsilon = 0.01
    config.max_iterations = 50
    config.tolerance = 0.01

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.datasets = ("bbc",)
    config.when_quick.num_texts = 200
    config.when_quick.encoders = ("wordllama", "glove")
    config.when_quick.random_seeds = (0, 1)
    return config
