import pytest

from anchor_opt import runner
from common.errors import UserError
from common.settings import sweep
from configs.anchor_opt import stitching, sweep_pairs


def test_methods_that_need_known_pairs_are_left_out_without_them():
    points = dict(sweep(sweep_pairs.get_config()))
    assert runner.grid(points[0]).methods == ("gt", "bootstrap")
    assert runner.grid(points[15]).methods == ("gt", "seed", "bootstrap")
    config = stitching.get_config()
    config.num_pairs = 0
    assert runner.grid(config).methods == (
        "gt",
        "algorithm1_printed",
        "algorithm1",
        "bootstrap",
        "lstsq_truth",
    )


@pytest.mark.parametrize(("name", "value"), [("methods", "magic"), ("optimise", "left")])
def test_unknown_names_are_refused(name, value):
    config = sweep_pairs.get_config()
    config[name] = (value,)
    with pytest.raises(UserError, match=f"config.{name} has '{value}'"):
        runner.grid(config)


def test_the_config_shows_the_defaults_of_the_bootstrap():
    values = runner.grid(sweep_pairs.get_config()).settings
    assert values.bootstrap == type(values.bootstrap)() and values.start == type(values.start)()
