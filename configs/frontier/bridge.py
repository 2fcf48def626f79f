"""Four spaces of words at once, in unknown order, without a single known pair.

  python -m frontier.main --config=configs/frontier/bridge.py --workdir=runs/bridge

Each pair of spaces is searched directly; spaces that no path of successful searches connects are
searched again with other random draws, and pairs that are not found are searched from the matches
that lead through the other spaces. Searches that fail take about two minutes on one core.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import shared


def get_config() -> ConfigDict:
    """Every value of the experiment."""
    config = ConfigDict(shared.search())
    config.experiment = "bridge"  # a file of frontier/experiments
    # Three or more. The items are those that all have, in the order of the first one.
    config.spaces = ("word2vec", "glove100", "glove", "minilm_input")
    config.num_rows = 2_500  # items, the most frequent ones
    config.random_seeds = (0, 1, 2, 3, 4)  # of the orders and the searches
    config.repeats = 2  # searches at most between spaces that the searches before do not connect
    config.k = 10  # neighbours of CSLS

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.spaces = ("glove", "glove100", "word2vec")
    config.when_quick.num_rows = 500
    config.when_quick.random_seeds = (0,)
    return config
