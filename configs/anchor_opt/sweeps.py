"""Values that all sweeps have in common; this file itself is not a sweep."""

from ml_collections import ConfigDict

from configs.anchor_opt import retrieval


def over(name: str, values: tuple, quick: tuple) -> ConfigDict:
    """The retrieval experiment with one value varied, at a size for ten minutes on two cores.

    Args:
      name: of the value that is varied.
      values: that it takes.
      quick: those of a quick run.
    """
    config = retrieval.get_config()
    config.sweep_over = name
    config.sweep_values = values
    config.methods = ("gt", "seed", "bootstrap")
    config.optimise = ("target",)
    config.num_words = 2_000
    config.random_seeds = (0, 1, 2)
    config.when_quick.sweep_values = quick
    return config
