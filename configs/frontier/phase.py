"""How far apart may two spaces be? The MRR of each method over the CKA of the two spaces.

  python -m frontier.main --config=configs/frontier/phase.py --workdir=runs/phase

A noisy isometry is a copy of a space that is rotated and has Gaussian noise added, so that its CKA
can be chosen; real pairs stand beside them. The figure is phase.png. A second table describes the
first match of Algorithm 1 from both of its starts. The spaces of sentences and images are
encoded on first use, which takes about an hour on one core and is kept in the cache.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import shared
from configs.frontier import spaces


def get_config() -> ConfigDict:
    """Values with their source; those of the task and of the methods are in shared.py."""
    config = ConfigDict({**shared.task(), **shared.methods()})
    config.experiment = "phase"
    config.isometries_of = "minilm"  # of common/spaces/paired_spaces.py, or a file of vectors
    # Standard deviation of the noise, in each direction in units of the space's own
    config.noise = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)
    config.pairs = spaces.get_config().pairs  # SOURCE:TARGET; the target's anchors are sought
    config.wrong_pair_fraction = 0.0  # fraction of the known pairs that are paired wrongly
    config.num_words = 2_000  # items of each pair, of the source's first
    config.max_rows = 10_000  # sentences or images that are encoded, rows that are read of a file
    config.random_seeds = (0, 1, 2, 3, 4)  # of anchors, shuffle, methods, and noisy isometries
    config.methods = (
        "seed",
        "gt",
        "algorithm1_printed",
        "algorithm1",
        "bootstrap",
        "lstsq_truth",
    )

    config.when_quick = ConfigDict()
    config.when_quick.noise = (0.4,)
    config.when_quick.pairs = ("glove:word2vec",)
    config.when_quick.num_words = 500
    config.when_quick.random_seeds = (0,)
    return config
