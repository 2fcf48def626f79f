"""One to ten known pairs, all other items in unknown order, beside the published methods.

  python -m frontier.main --config=configs/frontier/few_pairs.py --workdir=runs/few_pairs

Both spaces have the same 1,000 items. GOAT holds arrays of the square of that number.
"""

from ml_collections import ConfigDict

from configs.frontier import overlap


def get_config() -> ConfigDict:
    """Values of the overlap experiment except for those below."""
    config = overlap.get_config()
    config.num_rows = 1_000
    config.shared = config.noise = ()
    config.known_pairs = (1, 2, 3, 5, 10)
    config.methods = ("gt", "bootstrap", "mini_vec2vec", "rosetta", "goat")
    config.when_quick.known_pairs = (10,)
    config.when_quick.shared = config.when_quick.noise = ()
    config.when_quick.methods = ("bootstrap", "goat")
    return config
