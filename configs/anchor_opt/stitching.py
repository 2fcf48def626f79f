"""Zero-shot stitching of two text encoders: Tables 2 and 6 of the anchor optimisation paper.

  python -m anchor_opt.main --config=configs/anchor_opt/stitching.py --workdir=runs/stitching

Takes five minutes on one core. Expected F1 on the other encoder, mean of both directions: bootstrap
.724, true anchors .703, known pairs alone .662 (head published).
"""

from ml_collections import ConfigDict

from configs.anchor_opt import retrieval


def get_config() -> ConfigDict:
    """Values of the retrieval experiment except for those below; T3 is the paper's Table 3."""
    config = retrieval.get_config()
    config.experiment = "stitching"

    # Data: the name of an encoder (minilm, minilm_input, glove, wordllama), or the path of an .npz
    # with the arrays train [n, d], test [m, d], train_labels [n] and test_labels [m]. Either row i
    # of both files is the same text, or both files hold parallel anchors [k, d], of which the first
    # num_pairs are the known pairs.
    config.source = "minilm_input"
    config.target = "glove"  # with minilm as one of the two the bootstrap fails, see RESULTS.md
    config.texts = "imdb"  # or rotten_tomatoes: what the named encoders read
    config.num_train = 3_000  # texts to train the heads on, and to draw the anchors from
    config.num_test = 2_000
    # Texts are cut to this number of word pieces, the limit of MiniLM. At 64 the averages classify
    # worse, and match worse with all true anchors (measured). MiniLM itself takes minutes at 256.
    config.max_pieces = 256
    config.smoothing = 1e-3  # a in a / (a + p(word)), Arora et al. 2017; of minilm_input and glove

    # The task; num_anchors, num_pairs and random_seeds as in retrieval (T3)
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
    config.when_quick.num_train = 800
    config.when_quick.num_test = 400
    config.when_quick.random_seeds = (0,)
    config.when_quick.methods = ("gt", "seed", "bootstrap")
    config.when_quick.heads = ("published",)
    for name in (*retrieval.OF_WORDS, "wrong_pair_fraction"):
        del config[name]
    return config
