from anchor_opt.measure import check
from common import sweeps
from configs.anchor_opt import stitching, sweep_seeds


def test_methods_that_need_seeds_are_left_out_where_there_are_none():
    points = dict(sweeps.points(sweep_seeds.get_config(), check))
    assert points[0].methods == ("gt", "bootstrap")
    assert points[15].methods == ("gt", "seed", "bootstrap")
    config = stitching.get_config()
    config.num_seeds = 0
    check(config)
    assert config.methods == ("gt", "algorithm1", "bootstrap", "oracle")
