"""Readings of the paper's Algorithm 1 side by side, where its text and its lines differ.

  python -m anchor_opt.main --config=configs/anchor_opt/readings.py --workdir=runs/readings

Prints the MRR of each random run. Results: docs/results/anchor_opt/readings.md.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import ablation


def get_config() -> ConfigDict:
    """Values of the ablation except for those here, which are those of Algorithm 1 as printed."""
    config = ablation.get_config()
    config.pairs = ("minilm_sentences:mpnet_sentences", "glove:word2vec")
    config.vary = (
        ("centre", (True, False)),  # the paper scales vectors to unit norm and says no more
        ("algorithm1.permute", ("source", "target")),  # eq. 1, line 6
        ("algorithm1.ties", ("first", "random")),
    )
    config.algorithm1.init_norm = 1.0
    config.algorithm1.sphere_from = 0
    config.algorithm1.ties = "first"  # of equal entries of the plan: 'first' row, or a 'random' one
    config.detail = True  # also each random run by itself, and discrete anchors (line 10)
    config.num_words = 4_000
    config.max_rows = 4_000  # sentences that are encoded; spaces of words are read whole
    config.random_seeds = (0, 1, 2, 3, 4)
    config.methods = ("gt", "seed", "algorithm1", "lstsq_truth")  # when_quick has two more

    config.when_quick.algorithm1 = ConfigDict({"steps": 50})
    config.when_quick.random_seeds = (0, 1)
    config.when_quick.methods = (*config.methods, "algorithm1_exponential", "algorithm1_normalised")
    del config.when_quick["vary"]
    return config
