"""When does Algorithm 1 as printed succeed? The signal of the known pairs over the noise at first.

  python -m frontier.main --config=configs/frontier/boundary.py --workdir=runs/boundary

A boundary is fitted to the runs between two spaces of sentences, in both directions, and checked on
words. The figure is boundary.png. The law: frontier/methods/first_match.py.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import shared


def get_config() -> ConfigDict:
    """Values with their source; those of the task and of the methods are in shared.py."""
    config = ConfigDict({**shared.task(), **shared.methods()})
    config.experiment = "boundary"
    # SOURCE:TARGET; the anchors of the target are sought
    config.pairs = ("minilm_sentences:mpnet_sentences", "mpnet_sentences:minilm_sentences")
    config.check_pairs = ("glove:word2vec",)  # to which nothing is fitted
    config.num_words = 2_000  # items
    # Of the target: 'all', or 'leading', 'random' or 'padded' and a number
    config.dimensions = "all"
    config.vary = (  # as in ablation.py
        ("num_anchors", (50, 100, 450)),
        ("num_pairs", (10, 20, 30)),
        ("dimensions", ("leading 192", "random 192", "padded 1536")),
        ("algorithm1.init_norm", (0.5, 0.25)),
        ("num_words", (4_000,)),  # what the law leaves out; nothing is fitted to these runs either
    )
    config.random_seeds = (0, 1, 2)
    config.methods = ("algorithm1_printed",)
    config.algorithm1.steps = 40  # T3: 250, by which some of the runs undecided at 40 succeed
    config.algorithm1.init_norm = 1.0
    config.algorithm1.sphere_from = 25  # where init_norm is varied; as printed: 0

    config.when_quick = ConfigDict()
    config.when_quick.pairs = ("glove:glove100",)
    config.when_quick.num_words = 500
    config.when_quick.vary = (("num_pairs", (5,)), ("algorithm1.init_norm", (0.1,)))
    config.when_quick.random_seeds = (0,)
    return config
