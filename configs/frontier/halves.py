"""Two halves of the texts, one in each space: no item in common but the known pairs, if any.

  python -m frontier.main --config=configs/frontier/halves.py --workdir=runs/halves

The vectors of two encoders over different sentences, 50,000 each, are matched; the map is judged
on 2,000 other sentences. Several numbers of rows, --config.half_rows=1000,2000, or of known pairs,
--config.known_pairs=0,15,100, are drawn as curves. A random run of 50,000 rows takes about twelve
minutes on one core, of which the two searches of `disjoint` take most. All sentences are encoded on
first use, which takes about half an hour on one core and is kept in the cache. With
--config.shared=1 --config.methods=bootstrap,mini_vec2vec both halves have the same sentences, in an
order that tells nothing.
"""

import dataclasses

from ml_collections import ConfigDict

from frontier.methods import Settings
from isthmus.search import disjoint, initialization


def get_config() -> ConfigDict:
    """Every value of the experiment."""
    config = ConfigDict()
    config.experiment = "halves"  # a file of frontier/experiments
    config.pairs = ("wordllama_sentences:minilm_sentences",)  # SOURCE:TARGET, see spaces.py
    config.half_rows = (50_000,)  # items of each half
    config.known_pairs = (0,)  # items that both halves have
    config.shared = 0.0  # fraction of the items of each half that the other has too; 1: the same
    config.num_test = 2_000  # items of the third set
    config.max_rows = 10_000  # rows that are read of a file, or more if needed
    config.random_seeds = (0, 1, 2, 3, 4)  # of the draws and the methods
    config.methods = ("disjoint", "mini_vec2vec", "rosetta")

    config.disjoint = ConfigDict(dataclasses.asdict(disjoint.Settings()))
    config.start = ConfigDict(dataclasses.asdict(initialization.Settings()))
    for name in ("mini_vec2vec", "rosetta"):
        config[name] = ConfigDict(dataclasses.asdict(getattr(Settings(), name)))
    # Paper: 10,000. A hundred exact assignments of as many rows that match badly take hours.
    config.rosetta.draw_rows = 2_000

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.pairs = ("glove:glove100",)
    config.when_quick.half_rows = (1_200,)
    config.when_quick.known_pairs = (0, 60)  # more than the 50 dimensions of GloVe
    config.when_quick.num_test = 300
    config.when_quick.random_seeds = (0,)
    config.when_quick.methods = ("disjoint", "mini_vec2vec", "rosetta", "goat", "procrustes")
    config.when_quick.disjoint = ConfigDict({"num_draws": 10, "first_steps": 60})
    config.when_quick.disjoint.update({"weighted_steps": 20, "steps": 10, "last_steps": 3})
    config.when_quick.rosetta = ConfigDict({"num_restarts": 20})
    return config
