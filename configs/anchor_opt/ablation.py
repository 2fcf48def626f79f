"""Which values matter? Values of Algorithm 1 and of the task are varied one at a time.

  python -m anchor_opt.main --config=configs/anchor_opt/ablation.py --workdir=runs/ablation

Prints, for each pair of spaces, the MRR at each value of each name in config.vary, and draws that
of Algorithm 1 in ablation.png. Other values are varied by a line of config.vary, or by the flag:

  --config.vary="[('algorithm1.init_norm', (0.1, 0.01)), ('num_pairs', (10, 15, 20))]"
"""

from ml_collections import ConfigDict

from configs.anchor_opt import shared


def get_config() -> ConfigDict:
    """Values with their source; those of the task and of the methods are in shared.py."""
    config = ConfigDict({**shared.task(), **shared.methods()})
    config.experiment = "ablation"

    # SOURCE:TARGET, names of common/spaces/paired_spaces.py or paths of files of vectors; the
    # anchors of the target are sought
    config.pairs = (
        "minilm:minilm_input",  # two layers of one model
        "glove:word2vec",
        "glove:minilm_input",  # the two that are farthest apart
    )
    # (name of a value of this config, the values that it takes); all other values stay as they are
    # here. For a name that begins with a method's, as algorithm1.steps, that method alone is run.
    config.vary = (
        ("algorithm1.init_norm", (1.0, 0.3, 0.1, 0.03, 0.01, 0.001)),
        ("algorithm1.sphere_from", (0, 50, 150, 250)),
        ("algorithm1.tied_steps", (0, 10, 50)),
        ("algorithm1.learning_rate", (0.005, 0.02, 0.05)),
        ("algorithm1.steps", (100, 250, 500)),
        ("algorithm1.sinkhorn_epsilon", (1e-4, 1e-3, 1e-2)),
        ("algorithm1.sinkhorn_iterations", (1, 3)),
        ("algorithm1.permute", ("source", "target")),
        ("algorithm1.plan", ("hard", "soft")),
        ("algorithm1.freeze_pairs", (False, True)),
        ("num_pairs", (5, 10, 15, 30, 50, 100, 300)),
        ("num_words", (1_000, 2_000, 4_000)),  # left out where a pair has fewer
        ("num_anchors", (50, 100, 300)),
        ("wrong_pair_fraction", (0.0, 0.1, 0.2)),
        ("centre", (True, False)),
    )
    config.centre = True  # whether unit rows are centred, and scaled to unit norm again
    config.num_words = 2_000  # the most frequent words that both spaces have
    config.drop_first = 0  # of the shared words
    config.min_letters = 1  # letters of a word
    config.max_rows = 200_000  # rows read of a file, from its top
    config.wrong_pair_fraction = 0.0  # fraction of the known pairs that are paired wrongly
    config.random_seeds = (0, 1, 2)
    config.methods = ("gt", "seed", "algorithm1", "bootstrap")

    config.when_quick = ConfigDict()
    config.when_quick.pairs = ("glove:word2vec",)
    config.when_quick.num_words = 600
    config.when_quick.random_seeds = (0,)
    config.when_quick.vary = (
        ("algorithm1.init_norm", (1.0, 0.01)),
        ("num_pairs", (15, 50)),
    )
    return config
