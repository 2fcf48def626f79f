"""Two spaces in unknown order without a single known pair.

  python -m frontier.main --config=configs/frontier/no_pairs.py --workdir=runs/no_pairs

Each space has 2,500 items, which are the same unless config.shared is below 1, in an order that
tells nothing. The search has the two geometries alone, and reports whether it has failed.
--config.num_rows=5000 --config.shared=0.62 leaves 3,100 items in common.
"""

from ml_collections import ConfigDict

from configs.frontier import overlap


def get_config() -> ConfigDict:
    """Values of the overlap experiment except for those below."""
    config = overlap.get_config()
    config.pairs = ("minilm:minilm_input", "glove100:word2vec", "glove:word2vec")
    config.num_rows = 2_500
    config.num_pairs = 0
    config.shared = (1.0,)
    config.noise = (0.8,)
    config.methods = ("bootstrap", "mini_vec2vec", "rosetta", "lstsq_truth")
    config.random_seeds = (0, 1, 2, 3, 4)
    config.when_quick.pairs = ("glove100:word2vec",)
    return config
