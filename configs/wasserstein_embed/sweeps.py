"""Values that all sweeps over images have in common; not an experiment by itself."""

from ml_collections import ConfigDict

from configs.wasserstein_embed import images


def over(experiment: str, name: str, values: tuple) -> ConfigDict:
    """The images experiment on 5,000 digits with one value varied, with three random seeds.

    Args:
      experiment: name of the experiment.
      name: of the value that varies.
      values: that it takes; a quick run has the first two.
    """
    config = images.get_config()
    config.experiment = experiment
    config.sweep_over = name
    config.sweep_values = values
    config.random_seeds = (0, 1, 2)
    config.dataset = "mnist_5k"
    config.steps = 200
    config.evaluate_every = 100
    config.when_quick.sweep_values = values[:2]
    config.when_quick.methods = ("sinkhorn",)
    return config
