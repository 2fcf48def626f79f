"""How right must the first matching be for self-learning without known pairs to find the rest?

  python -m anchor_opt.main --config=configs/anchor_opt/basin.py --workdir=runs/basin

Self-learning begins with matchings of which a given share is right, beside those that the search
without known pairs begins with. A random run takes under a minute of one core's time. The figure is
basin.png. Results: docs/results/anchor_opt/basin.md.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import overlap


def get_config() -> ConfigDict:
    """Values of the overlap experiment except for those below."""
    config = overlap.get_config()
    config.experiment = "basin"
    config.pairs = (
        "glove:word2vec",
        "word2vec:minilm_input",
        "glove:minilm_input",
        "word2vec:finnish_by_english",
    )
    config.num_rows = 2_500  # items of each space, as in no_pairs.py
    config.right = (0.01, 0.02, 0.05, 0.1, 1.0)  # share of the rows that are matched rightly
    config.random_seeds = (0, 1, 2)
    for name in ("num_anchors", "num_pairs", "shared", "known_pairs", "noise", "noisy_space"):
        del config[name]
    del config.optimise, config.methods
    config.when_quick = ConfigDict()
    config.when_quick.pairs = ("glove100:word2vec",)
    config.when_quick.num_rows = 500
    config.when_quick.right = (0.05, 1.0)
    config.when_quick.random_seeds = (0,)
    return config
