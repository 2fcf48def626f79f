"""Images and words without photographs: classes of a classifier matched with their names.

  python -m frontier.main --config=configs/frontier/classes.py --workdir=runs/classes

The weights of the 1,000 classes in the last layer of an image classifier, and the vectors of the
classes' names and definitions by encoders of texts, in unknown order but for some known pairs. A
random run between two spaces takes ten minutes of one core's time, most of it searches that fail.
--config.pairs=classes_minilm:classes_mpnet are two encoders of texts, for comparison.
Results: docs/results/frontier/classes.md.
"""

import dataclasses

from ml_collections import ConfigDict

from configs.anchor_opt import shared
from frontier.methods import Settings


def get_config() -> ConfigDict:
    """Every value of the experiment; those of the search are commented where they stand."""
    config = ConfigDict(shared.methods())
    config.experiment = "overlap"
    config.pairs = (
        "classes_efficientnet_lite0:classes_minilm",
        "classes_efficientnet_lite0:classes_mpnet",
        "classes_efficientnet_lite0:classes_glove",
    )
    config.num_rows = 1_000  # classes
    config.num_anchors = 0  # none are sought, so that the methods' own coordinates are measured
    config.shared = config.noise = ()
    config.known_pairs = (0, 15, 50, 200, 800)
    config.methods = ("procrustes", "spectral", "bootstrap", "mini_vec2vec", "rosetta", "goat")
    config.k = 10  # list length of the MRR, neighbours of CSLS
    config.random_seeds = (0, 1, 2)  # of the orders and the methods
    for name in ("spectral", "mini_vec2vec", "rosetta", "goat"):
        config[name] = ConfigDict(dataclasses.asdict(getattr(Settings(), name)))
    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.pairs = ("classes_efficientnet_lite0:classes_glove",)
    config.when_quick.known_pairs = (200,)
    config.when_quick.methods = ("procrustes", "spectral", "mini_vec2vec", "goat")
    config.when_quick.goat = ConfigDict({"steps": 5})
    config.when_quick.random_seeds = (0,)
    return config
