r"""Constants of the locality preserving loss that the paper does not state, on validation data.

  python -m lpl.main --config=configs/lpl/constants.py --workdir=runs/constants

Takes about 10 minutes on one core. Results: docs/results/lpl/word_alignment.md and nli.md.
"""

from ml_collections import ConfigDict

from configs.lpl import nli, word_alignment


def get_config() -> ConfigDict:
    """Values of both experiments, except for those here."""
    config = ConfigDict()
    config.experiment = "constants"  # a module of lpl/experiments

    # (name of a value of an experiment below, the values that it takes), one at a time
    config.vary = (
        ("word_alignment.lpa_mse.k", (5, 10, 50)),
        ("word_alignment.lpa_mse.beta", (0.3, 1.0, 2.0)),
        ("nli.mse_lpl.gamma", (0.01, 0.03, 0.1, 0.3)),
        ("nli.delta", ((100.0, -5.0, 1.0), (10.0, -5.0, 1.0), (100.0, 0.0, 0.0))),
        ("nli.k", (2, 5, 20)),
    )

    config.word_alignment = word_alignment.get_config()
    config.word_alignment.split = "validation"
    config.word_alignment.num_pairs = (500, 3_000)
    config.word_alignment.methods = ("lpa_mse",)
    config.nli = nli.get_config()
    config.nli.split = "validation"
    config.nli.num_pairs = (1_000,)  # of which the paper prints a gain
    config.nli.methods = ("mse_lpl",)
    config.word_alignment.when_quick.num_pairs = (500,)
    config.nli.when_quick.num_pairs = (100,)
    config.nli.when_quick.methods = ("mse_lpl",)
    for experiment in (config.word_alignment, config.nli):
        experiment.random_seeds = (0, 1, 2)

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.vary = (
        ("word_alignment.lpa_mse.k", (5,)),
        ("nli.mse_lpl.gamma", (0.03,)),
    )
    return config
