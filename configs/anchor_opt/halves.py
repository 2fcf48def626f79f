"""Two halves of the texts, one in each space: no item in common, no known pairs.

  python -m anchor_opt.main --config=configs/anchor_opt/halves.py --workdir=runs/halves

The vectors of two encoders over different sentences, 50,000 each, are matched; the map is judged
on 2,000 other sentences. A random run takes about seven minutes on one core. All sentences are
encoded on first use, which takes about half an hour on one core and is kept in the cache.
"""

import dataclasses

from ml_collections import ConfigDict

from anchor_opt import disjoint, starts, unpaired


def get_config() -> ConfigDict:
    """Every value of the experiment."""
    config = ConfigDict()
    config.experiment = "halves"  # the function of anchor_opt/experiments.py
    config.pairs = ("wordllama_sentences:minilm_sentences",)  # SOURCE:TARGET, see spaces.py
    config.num_rows = 50_000  # items of each half
    config.num_test = 2_000  # items of the third set
    config.max_rows = 10_000  # rows that are read of a file, or more if needed
    config.num_anchors = config.num_pairs = 0
    config.random_seeds = (0, 1, 2, 3, 4)  # of the draws and the methods
    config.optimise = ("target",)
    # "rosetta" too, whose hundred exact assignments of 10,000 rows have not been run here
    config.methods = ("disjoint", "mini_vec2vec")

    config.disjoint = ConfigDict(dataclasses.asdict(disjoint.Settings()))
    config.start = ConfigDict(dataclasses.asdict(starts.Settings()))
    for name in ("mini_vec2vec", "rosetta"):
        config[name] = ConfigDict(dataclasses.asdict(unpaired.METHODS[name][1]()))

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.pairs = ("glove:glove100",)
    config.when_quick.num_rows = 1_000
    config.when_quick.num_test = 200
    config.when_quick.random_seeds = (0,)
    return config
