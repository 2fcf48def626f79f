"""Retrieval across two word spaces: Tables 1, 4 and 5 of the anchor optimisation paper."""

from ml_collections import ConfigDict

from anchor_opt import defaults


def get_config() -> ConfigDict:
    """Values with their source; T3 is the paper's Table 3, "measured" is in RESULTS.md."""
    config = ConfigDict()
    config.experiment = "retrieval"  # the function of anchor_opt/experiments.py

    # Data: an embedded space (minilm, minilm_input, glove) or the path of a file of vectors:
    # word2vec .txt / .bin, fastText .vec, GloVe .txt, .npz, or .npy with a word list beside it.
    config.source = "minilm"
    config.target = "minilm_input"
    config.source_words = ""  # word list of a .npy / .npz source, one word a line
    config.target_words = ""
    config.num_words = 20_000  # the most frequent words that both spaces have (paper: about 20,000)
    config.drop_first = 0  # of the shared words (paper's notebooks: 400)
    config.min_letters = 1  # letters of a word (paper's notebooks: 4; embedded spaces: 3 or more)
    config.max_rows = 200_000  # rows read of a file, from its top

    # The task
    config.num_anchors = 300  # T3
    config.num_seeds = 15  # T3; known pairs among the anchors; 0: from the two geometries alone
    config.seed_noise = 0.0  # share of the seeds that are paired wrongly
    config.random_seeds = (0, 1, 2, 3, 4)  # T3; of anchors, shuffle and noise
    config.optimise = ("target", "source")  # whose anchors are sought: Table 4, Table 5
    config.methods = (
        "gt",
        "seed",
        "algorithm1",
        "bootstrap",
        "oracle",
        "procrustes",
        "iterated_procrustes",
        # "self_learning" too: the public peer's loop, a minute and more for one random seed
    )
    config.k = 10  # neighbours of Jaccard and MRR (paper, Table 4)

    # Algorithm 1
    config.algorithm1 = ConfigDict()
    config.algorithm1.steps = 250  # T3
    config.algorithm1.learning_rate = 0.02  # T3; Adam
    config.algorithm1.sinkhorn_epsilon = 1e-4  # T3; T3's stop error 1e-5 has no say at 1 iteration
    config.algorithm1.sinkhorn_iterations = 1  # T3
    config.algorithm1.permute = "fixed"  # rows that move: 'fixed' (eq. 1) or 'moving' (line 6)
    config.algorithm1.plan = "hard"  # 'hard': argmax of the plan; 'soft': its weighted mean
    config.algorithm1.freeze_seeds = False  # whether the 15 seed anchors stay where they are

    # Bootstrap, and its start without seeds: each value has its comment in anchor_opt/defaults.py
    config.bootstrap = defaults.bootstrap()
    config.start = defaults.start()

    # Baselines
    config.iterated_procrustes = ConfigDict()
    config.iterated_procrustes.iterations = 5  # Lample et al. 2018
    config.iterated_procrustes.neighbours = 10
    config.self_learning = ConfigDict()  # Artetxe et al. 2018 and its code
    config.self_learning.neighbours = 10
    config.self_learning.keep = 0.1  # share of similarities at first, x 2 as it stalls
    config.self_learning.patience = 50
    config.self_learning.tolerance = 1e-6
    config.self_learning.steps = 1_000  # at most

    # Figures: words whose neighbours are coloured in the scatter of the relative spaces
    config.figure_words = ("music", "doctor", "london", "football", "water", "money")

    config.quick = False  # the whole path on less: these values take the place of those above
    config.when_quick = ConfigDict()
    config.when_quick.num_words = 800
    config.when_quick.random_seeds = (0,)
    config.when_quick.optimise = ("target",)
    return config
