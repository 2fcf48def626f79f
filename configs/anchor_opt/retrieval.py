"""Retrieval across two word spaces: Tables 1, 4 and 5 of the anchor optimisation paper.

  python -m anchor_opt.main --config=configs/anchor_opt/retrieval.py --workdir=runs/retrieval

The two spaces are independent: GloVe's vectors (50 numbers, Wikipedia and newswire) and Word2Vec's
(300, Google News). All methods take 14 minutes on one core. --config.num_words=14000 takes almost
all 14,689 words that both have. --config.source=minilm --config.target=minilm_input are two layers
of one model. --config.num_pairs=0: from the two geometries alone. Results:
docs/results/anchor_opt/retrieval.md.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import shared


def get_config() -> ConfigDict:
    """Values with their source; those of the task and of the methods are in shared.py."""
    config = ConfigDict({**shared.task(), **shared.methods()})
    config.experiment = "retrieval"  # a file of anchor_opt/experiments

    # Data: a space by name or the path of a file of vectors. Names:
    #   glove, glove100     GloVe 6B of 50 and 100 dimensions, trained on Wikipedia and newswire
    #   word2vec            Word2Vec trained on Google News
    #   minilm              the sentence vectors that MiniLM gives to single words
    #   minilm_input        means of the input vectors of MiniLM's word pieces; with minilm, two
    #                       layers of one model
    #   finnish_by_english  vectors of the Finnish translations of English words
    #   minilm_sentences, and of mpnet, wordllama, use or e5       encoders of sentences
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
    config.wrong_pair_fraction = 0.0  # fraction of the known pairs that are paired wrongly
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

    # Figures: words whose neighbours are coloured in the scatter of the relative spaces
    config.figure_words = ("music", "doctor", "london", "football", "water", "money")

    config.when_quick = ConfigDict()
    config.when_quick.num_words = 500
    config.when_quick.random_seeds = (0,)
    config.when_quick.optimise = ("target",)
    return config
