"""What is known of pairs of spaces before any method runs.

  python -m frontier.main --config=configs/frontier/spaces.py --workdir=runs/spaces

Prints dimensions, numbers of shared items, linear CKA, the precision of linear maps fitted on true
pairs, and the retrieval by true anchors, and draws MRR over CKA in cka.png. The spaces of sentences
and images are encoded on first use, which takes about an hour on one core and is kept in the cache.
Other pairs: --config.pairs="('glove:word2vec', 'word2vec:minilm_input')".
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Every value of the experiment."""
    config = ConfigDict()
    config.experiment = "spaces"  # a file of frontier/experiments

    # SOURCE:TARGET, names of common/spaces/paired_spaces.py or paths of files of vectors
    config.pairs = (
        "glove:glove100",  # two dimensions of one method on one corpus
        "glove100:word2vec",  # two methods, two corpora
        "glove:word2vec",
        "word2vec:minilm_input",  # word vectors, and the input layer of a sentence encoder
        "glove100:minilm_input",
        "glove:minilm_input",
        "word2vec:minilm",  # word vectors, and a sentence encoder given single words
        "minilm:minilm_input",  # two layers of one model
        "wordllama_sentences:minilm_sentences",  # sentence encoders
        "minilm_sentences:mpnet_sentences",
        "wordllama_sentences:mpnet_sentences",
        "word2vec:finnish_by_english",  # two languages, paired by a dictionary
        "efficientnet_lite0:efficientnet_lite2",  # two image encoders of one family
        "efficientnet_lite0:augnet_resnet50",  # two trained on different data, in different ways
    )
    config.num_words = 4_000  # items of each pair that are measured, of the source's first
    config.max_rows = 10_000  # sentences or images that are encoded, rows that are read of a file
    config.num_anchors = 300  # true anchors, as many as in Table 3 of the paper
    config.k = 10  # list length of Jaccard and MRR (paper, Table 4)
    config.random_seeds = (0, 1, 2, 3, 4)  # of the anchors and the halves

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.pairs = ("glove:word2vec",)
    config.when_quick.num_words = 800
    config.when_quick.random_seeds = (0, 1)
    return config
