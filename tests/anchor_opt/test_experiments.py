import pytest

from anchor_opt.experiments import sweep_points
from common.errors import UserError
from configs.anchor_opt import starts, sweep_seeds


def test_each_point_of_a_sweep_has_its_own_nested_values():
    config = starts.get_config()
    points = sweep_points(config)
    assert [point.start.name for _, point in points] == [value for value, _ in points]
    assert len(points) == len(config.sweep_values) > 2
    assert config.start.name == "gromov"


def test_methods_that_need_seeds_are_left_out_where_there_are_none():
    points = dict(sweep_points(sweep_seeds.get_config()))
    assert points[0].methods == ("gt", "bootstrap")
    assert points[15].methods == ("gt", "seed", "bootstrap")


@pytest.mark.parametrize(("name", "value"), [("start.nane", "gromov"), ("num_seeds", "many")])
def test_a_wrong_sweep_is_one_sentence(name, value):
    config = sweep_seeds.get_config()
    config.sweep_over, config.sweep_values = name, (value,)
    with pytest.raises(UserError, match="correct sweep_over or sweep_values"):
        sweep_points(config.lock())
