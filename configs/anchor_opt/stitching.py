"""Zero-shot stitching of two text encoders: Tables 2 and 6 of the anchor optimisation paper."""

from ml_collections import ConfigDict

from configs.anchor_opt import retrieval

WORDS_ONLY = (  # values of the retrieval experiment that mean nothing here
    "source_words",
    "target_words",
    "num_words",
    "drop_first",
    "min_letters",
    "max_rows",
    "seed_noise",
    "figure_words",
)


def get_config() -> ConfigDict:
    """Values of the retrieval experiment but for those below; T3 is the paper's Table 3."""
    config = retrieval.get_config()
    config.experiment = "stitching"

    # Data: an encoder by name (minilm, minilm_input, glove: common/data/encoders.py), or a path of
    # an .npz with the arrays train [n, d], test [m, d], train_labels [n] and test_labels [m]. Row i
    # of both files is the same text, or else both hold anchors [k, d], the known pairs, of which
    # the first num_seeds are the seeds.
    config.source = "minilm_input"
    config.target = (
        "glove"  # chosen because the bootstrap fails with minilm on one side: see RESULTS.md
    )
    config.texts = "imdb"  # or rotten_tomatoes; what the encoders by name read
    config.num_train = 3_000  # texts of those: the heads' training set, the anchors' pool
    config.num_test = 2_000
    # Word pieces after which a text is cut, MiniLM's own limit; at 64 the averages classify worse
    # and match worse with all true anchors (measured). MiniLM itself takes minutes at 256.
    config.max_pieces = 256
    config.smoothing = 1e-3  # a of the averages' weights a / (a + p(word)), Arora et al. 2017

    # The task; num_anchors, num_seeds and random_seeds as in retrieval, which T3 says
    config.optimise = ("target",)  # A.2: the anchors of one space are given, of the other sought
    config.methods = ("gt", "seed", "algorithm1", "bootstrap", "oracle")
    config.algorithm1.steps = 125  # T3
    config.algorithm1.learning_rate = 0.05  # T3

    # Texts have no frequency: any part of them would say which belong together.
    config.bootstrap.search_words = 1_000_000  # all texts
    config.bootstrap.anneal_words = (1_000_000,)
    config.start.words = (1_000_000,)

    # The classifier
    config.heads = ("published", "inductive")  # see anchor_opt/head.py
    config.head = ConfigDict()  # code of Moschella et al. 2023
    config.head.epochs = 5
    config.head.batch_size = 32
    config.head.learning_rate = 1e-3  # Adam

    config.when_quick = ConfigDict()
    config.when_quick.num_train = 800
    config.when_quick.num_test = 400
    config.when_quick.random_seeds = (0,)
    config.when_quick.methods = ("gt", "seed", "bootstrap")
    config.when_quick.heads = ("published",)
    for name in WORDS_ONLY:
        del config[name]
    return config
