"""Retrieval across two word spaces: Tables 1, 4 and 5 of the anchor optimisation paper.

  python -m anchor_opt.main --config=configs/anchor_opt/retrieval.py --workdir=runs/retrieval

The two spaces are independent: GloVe's vectors (50 numbers, Wikipedia and newswire) and Word2Vec's
(300, Google News). All methods take 14 minutes on one core. --config.num_words=14000 takes almost
all 14,689 words that both have. --config.source=minilm --config.target=minilm_input are two layers
of one model. --config.num_pairs=0: from the two geometries alone. Results:
docs/results/anchor_opt/retrieval.md.
"""

import dataclasses

from ml_collections import ConfigDict

from isthmus import search
from isthmus.search import initialization

# Values below of one pair of spaces of words, which experiments on pairs of any kind do not have.
OF_ONE_PAIR = (
    "source",
    "target",
    "wrong_pair_fraction",
    "source_words",
    "target_words",
    "num_words",
    "drop_first",
    "min_letters",
    "max_rows",
    "figure_words",
)


def get_config() -> ConfigDict:
    """Values with their source.

    T3 is the Table 3 of the paper; "measured" is in docs/results/frontier/constants.md.
    """
    config = ConfigDict()
    config.experiment = "retrieval"  # a file of anchor_opt/experiments

    # Data: a space by name or the path of a file of vectors. Names:
    #   glove, glove100     GloVe 6B of 50 and 100 dimensions, trained on Wikipedia and newswire
    #   word2vec            Word2Vec trained on Google News
    #   minilm              the sentence vectors that MiniLM gives to single words
    #   minilm_input        means of the input vectors of MiniLM's word pieces; with minilm, two
    #                       layers of one model
    #   finnish_by_english  vectors of the Finnish translations of English words
    #   minilm_sentences, mpnet_sentences, wordllama_sentences     three encoders of sentences
    #   efficientnet_lite0, efficientnet_lite2, augnet_resnet50    three encoders of images
    #   classes_efficientnet_lite0, classes_minilm and others      classes of images (classes.py)
    # Files: word2vec .txt / .bin, fastText .vec, GloVe .txt, .npz, or .npy with a word list.
    config.source = "glove"
    config.target = "word2vec"
    config.source_words = ""  # word list of a .npy / .npz source, one word a line
    config.target_words = ""
    config.num_words = 4_000  # the most frequent words that both spaces have (paper: about 20,000)
    config.drop_first = 0  # of the shared words (paper's notebooks: 400)
    config.min_letters = 1  # letters of a word (paper's notebooks: 4; embedded spaces: 3 or more)
    config.max_rows = 200_000  # rows read of a file, from its top

    # The task
    config.num_anchors = 300  # T3
    config.num_pairs = 15  # T3; known pairs among the anchors; 0: from the two geometries alone
    config.wrong_pair_fraction = 0.0  # fraction of the known pairs that are paired wrongly
    config.random_seeds = (0, 1, 2, 3, 4)  # T3; of anchors, shuffle and methods
    config.optimise = ("target", "source")  # whose anchors are sought: Table 4, Table 5
    config.methods = (
        "gt",
        "seed",
        "algorithm1_printed",  # with init_norm = 1, sphere_from = 0 and tied_steps = 0
        "algorithm1",
        "bootstrap",
        "lstsq_truth",
        "procrustes",
        "iterated_procrustes",
        # Also the published methods for few or no pairs, "mini_vec2vec", "rosetta", "goat"
    )
    config.k = 10  # list length of Jaccard and MRR (paper, Table 4)

    # Algorithm 1
    config.algorithm1 = ConfigDict()
    config.algorithm1.steps = 250  # T3
    config.algorithm1.learning_rate = 0.02  # T3; Adam
    config.algorithm1.sinkhorn_epsilon = 1e-4  # T3; its stop error has no effect at 1 iteration
    config.algorithm1.sinkhorn_iterations = 1  # T3
    config.algorithm1.permute = "source"  # the rows permuted: 'source' (eq. 1), 'target' (line 6)
    config.algorithm1.plan = "hard"  # 'hard': argmax of the plan; 'soft': its weighted mean
    config.algorithm1.freeze_pairs = False  # whether the anchors in known pairs are held constant
    config.algorithm1.init_norm = 0.01  # of the random anchors at first; T3: 1
    config.algorithm1.tied_steps = 0  # first steps, in which one orthogonal map moves all anchors
    config.algorithm1.sphere_from = 150  # step from which anchors have unit norm; T3: 0

    # Bootstrap, and its initializations without known pairs: values are commented where they stand
    config.bootstrap = ConfigDict(dataclasses.asdict(search.Steps()))
    config.start = ConfigDict(dataclasses.asdict(initialization.Settings()))

    # Baselines
    config.iterated_procrustes = ConfigDict()
    config.iterated_procrustes.iterations = 5  # Lample et al. 2018
    config.iterated_procrustes.neighbours = 10

    # Figures: words whose neighbours are coloured in the scatter of the relative spaces
    config.figure_words = ("music", "doctor", "london", "football", "water", "money")

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.num_words = 500
    config.when_quick.random_seeds = (0,)
    config.when_quick.optimise = ("target",)
    return config
