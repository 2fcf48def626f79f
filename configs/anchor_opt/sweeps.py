"""What the sweeps share; each is a file of its own, this one is none."""

from ml_collections import ConfigDict

from configs.anchor_opt import retrieval


def over(name: str, values: tuple, quick: tuple) -> ConfigDict:
    """The retrieval experiment with one value varied, at a size for ten minutes on two cores.

    Args:
      name: the value that varies.
      values: through which it goes.
      quick: those of a quick run.
    """
    config = retrieval.get_config()
    config.sweep_over = name  # the value that varies
    config.sweep_values = values
    config.methods = ("gt", "seed", "bootstrap")
    config.optimise = ("target",)
    config.num_words = 2_000
    config.random_seeds = (0, 1, 2)  # of five
    config.when_quick.sweep_values = quick
    return config
