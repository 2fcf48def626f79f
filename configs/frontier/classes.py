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

from configs.frontier import overlap
from frontier.methods import spectral


def get_config() -> ConfigDict:
    """Values of the overlap experiment except for those below."""
    config = overlap.get_config()
    config.experiment = "classes"
    config.pairs = (
        "classes_efficientnet_lite0:classes_minilm",
        "classes_efficientnet_lite0:classes_mpnet",
        "classes_efficientnet_lite0:classes_glove",
    )
    config.known_pairs = (0, 15, 50, 200, 800)
    config.methods = ("procrustes", "spectral", "bootstrap", "mini_vec2vec", "rosetta", "goat")
    config.spectral = ConfigDict(dataclasses.asdict(spectral.Settings()))
    for name in ("num_rows", "num_anchors", "num_pairs", "shared", "noise", "noisy_space"):
        del config[name]
    del config.optimise
    config.when_quick = ConfigDict()
    config.when_quick.pairs = ("classes_efficientnet_lite0:classes_glove",)
    config.when_quick.known_pairs = (200,)
    config.when_quick.methods = ("procrustes", "spectral", "mini_vec2vec", "goat")
    config.when_quick.goat = ConfigDict({"steps": 5})
    config.when_quick.random_seeds = (0,)
    return config
