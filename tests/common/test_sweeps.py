import pytest
from ml_collections import ConfigDict

from common import sweeps
from common.errors import UserError


def config(name="training.steps", values=(1, 2, 3)):
    values = {"training": {"steps": 7}, "size": 5, "sweep_over": name, "sweep_values": values}
    return ConfigDict(values).lock()


def test_each_point_has_its_own_nested_values():
    start = config()
    points = sweeps.points(start)
    assert [(value, point.training.steps) for value, point in points] == [(1, 1), (2, 2), (3, 3)]
    assert start.training.steps == 7


def test_what_the_check_changes_stays_with_its_point():
    def check(point):
        point.size = 10 * point.training.steps

    assert [point.size for _, point in sweeps.points(config(), check)] == [10, 20, 30]


@pytest.mark.parametrize(("name", "value"), [("training.stesp", 1), ("size", "many")])
def test_a_wrong_sweep_is_one_sentence(name, value):
    with pytest.raises(UserError, match="correct sweep_over or sweep_values"):
        sweeps.points(config(name, (value,)))
