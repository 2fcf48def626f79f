"""Table 1: accuracy of the nearest class mean on digits.

  python -m my_paper.main --config=configs/my_paper/main_table.py --workdir=runs/mine

Takes seconds; expected accuracy about .90.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Every value with its source."""
    config = ConfigDict()
    config.experiment = "main_table"  # a module of my_paper/experiments
    config.num_train = 1_000  # images (section 4.1)
    config.random_seeds = (0, 1, 2)  # of the split (section 4.1)

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.num_train = 100
    return config
