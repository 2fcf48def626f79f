"""What the sweeps over images share; each is a file of its own, this one is none."""

from ml_collections import ConfigDict

from configs.wasserstein_embed import images


def over(experiment: str, name: str, values: tuple) -> ConfigDict:
    """The images experiment with one value varied, at a size for ten minutes on two cores.

    Args:
      experiment: its name.
      name: the value that varies.
      values: through which it goes, the first two of them in a quick run.
    """
    config = images.get_config()
    config.experiment = experiment
    config.sweep_over = name  # the value that varies
    config.sweep_values = values
    config.random_seeds = (0,)
    config.steps = 200  # of 800
    config.when_quick.sweep_values = values[:2]
    config.when_quick.methods = ("sinkhorn",)
    config.when_quick.steps = 10
    return config
