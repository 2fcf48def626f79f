"""Zero-shot stitching of text encoders: Tables 2 and 6 of the anchor optimisation paper.

  python -m anchor_opt.main --config=configs/anchor_opt/stitching.py --workdir=runs/stitching

News in five classes, with anchors that are sentences of movie reviews. With --config.shared=0 each
encoder has its own sentences, and the two have no other sentences in common than the anchors. A
random seed of a pair takes one to five minutes on one core, hence three random seeds for six pairs.
Results: docs/results/anchor_opt/stitching.md.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import shared


def get_config() -> ConfigDict:
    """Values with their source; those of the task and of the methods are in shared.py."""
    config = ConfigDict({**shared.task(), **shared.methods()})
    config.experiment = "stitching"

    # SOURCE:TARGET: names of encoders (minilm, mpnet, minilm_input, glove, word2vec, wordllama), or
    # paths of .npz files with the arrays train [n, d], test [m, d], train_labels [n] and
    # test_labels [m]. Either row i of both files is the same text, or both files hold parallel
    # anchors [k, d], of which the first num_pairs are the known pairs.
    config.pairs = (
        "wordllama:minilm",
        "word2vec:minilm",
        "glove:minilm",
        "word2vec:wordllama",
        "glove:wordllama",
        "glove:word2vec",
    )
    # The task, for encoders by name: bbc (five classes without order, hence without MAE),
    # imdb_stars (one to five stars; 2,004 texts), imdb or rotten_tomatoes (two classes)
    config.texts = "bbc"
    config.num_train = 1_500  # texts to train the heads on; there are 2,057
    config.num_test = 500
    # Texts are cut to this number of word pieces, the limit of MiniLM, which takes minutes at 256.
    config.max_pieces = 256
    config.smoothing = (
        1e-3  # a in a / (a + p(word)), Arora 2017; not of sentence encoders, wordllama
    )

    # Unlabelled texts of each encoder by name, among which anchors are drawn and sought: sentences
    # of movie reviews. 0: the training texts, as for files.
    config.num_unlabelled = 2_000
    config.shared = 1.0  # fraction of them that both encoders have; 0: the anchors alone

    # The anchors; num_anchors and num_pairs as in retrieval (T3)
    config.random_seeds = (0, 1, 2)  # T3: five
    config.optimise = ("target",)  # A.2: the anchors of one space are given, those of the other not
    config.methods = ("gt", "seed", "algorithm1_printed", "algorithm1", "bootstrap", "lstsq_truth")
    config.algorithm1.steps = 125  # T3
    config.algorithm1.learning_rate = 0.05  # T3
    config.algorithm1.sphere_from = 75

    # The classifier
    config.heads = ("published", "inductive")  # see anchor_opt/head.py
    config.head = ConfigDict()  # code of Moschella et al. 2023
    config.head.epochs = 5
    config.head.batch_size = 32
    config.head.learning_rate = 1e-3  # Adam

    config.when_quick = ConfigDict()
    config.when_quick.pairs = ("glove:word2vec",)
    config.when_quick.num_train = 800
    config.when_quick.num_test = 400
    config.when_quick.num_unlabelled = 800
    config.when_quick.random_seeds = (0,)
    config.when_quick.methods = ("gt", "seed", "bootstrap")
    config.when_quick.heads = ("published",)
    return config
