r"""Values of the images experiment, varied one at a time on 5,000 digits.

  python -m wasserstein_embed.main --config=configs/wasserstein_embed/sweep.py \
    --config.vary="[('num_points', (1, 2, 3, 5, 10))]" --workdir=runs/sweep_points

Takes about an hour and a half of one core with all names, 26 minutes with the numbers of points.
Training by Euclidean distance uses as many numbers each time. Section 4.1 of the report has the
power 1 of the loss, its section 3 and its code have 2.
"""

from ml_collections import ConfigDict

from configs.wasserstein_embed import images


def get_config() -> ConfigDict:
    """Values of the images experiment except those here."""
    config = images.get_config()
    config.experiment = "sweep"
    config.vary = (
        ("num_points", (1, 2, 3, 5, 10)),
        ("dimensions", (2, 3, 5)),
        ("distance.epsilon", (0.05, 0.2, 1.0, 5.0)),
        ("loss_power", (1.0, 2.0)),
    )
    config.random_seeds = (0, 1, 2)
    config.dataset = "mnist_5k"
    config.steps = 200
    config.evaluate_every = 100
    config.when_quick.vary = tuple((name, values[:2]) for name, values in config.vary)
    config.when_quick.methods = ("sinkhorn",)
    return config
