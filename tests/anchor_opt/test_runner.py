from anchor_opt import runner
from configs.anchor_opt import retrieval, stitching


def test_methods_that_need_known_pairs_are_left_out_without_them():
    config = retrieval.get_config()
    config.methods = ("gt", "seed", "bootstrap")
    assert runner.grid(config).methods == ("gt", "seed", "bootstrap")
    config.num_pairs = 0
    assert runner.grid(config).methods == ("gt", "bootstrap")
    config = stitching.get_config()
    config.num_pairs = 0
    assert runner.grid(config).methods == (
        "gt",
        "algorithm1_printed",
        "algorithm1",
        "bootstrap",
        "lstsq_truth",
    )


def test_the_config_shows_the_defaults_of_the_bootstrap():
    values = runner.grid(retrieval.get_config()).settings
    assert values.bootstrap == type(values.bootstrap)() and values.start == type(values.start)()
