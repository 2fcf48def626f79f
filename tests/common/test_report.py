import statistics

import numpy as np
from PIL import Image

from common import report


def test_summarise_groups_by_all_other_fields():
    values = [0.1, 0.4, 0.6]
    rows = [
        {"method": m, "metric": "mrr", "anchors": None, "random_seed": s, "value": v + offset}
        for s, v in enumerate(values)
        for m, offset in (("gt", 0.0), ("seed", 1.0))
    ]
    first, second = report.summarise(rows)
    assert (first["method"], second["method"], first["num_seeds"]) == ("gt", "seed", 3)
    np.testing.assert_allclose(first["mean"], statistics.mean(values))
    np.testing.assert_allclose(second["std"], statistics.stdev(values))
    assert report.summarise(rows[:1])[0]["std"] == 0


def test_markdown_is_a_table_of_equal_columns():
    text = report.markdown(["a", "long name"], [["1", "2"], ["333", "4"]])
    assert text.splitlines()[1] == "|-----|-----------|"
    assert len({len(line) for line in text.splitlines()}) == 1


def test_plus_minus():
    assert report.plus_minus(0.4912, 0.0021, 3) == ".491 ± .002"
    assert report.plus_minus(1.0, 0.0, 2) == "1.00 ± .00"
    assert report.plus_minus(-0.05, 0.01, 2) == "-.05 ± .01"
    assert report.plus_minus(10.05, 0.01, 2) == "10.05 ± .01"
    assert report.plus_minus(None, None, 3) == "-"
    assert report.plus_minus(0.5, None, 3) == ".500"


def test_one_random_seed_has_no_deviation():
    assert report.measured({"mean": 0.4912, "std": 0.0021, "num_seeds": 2}) == ".491 ± .002"
    assert report.measured({"mean": 0.4912, "std": 0.0, "num_seeds": 1}) == ".491"


def test_figures_are_written_whole(tmp_path):
    rng = np.random.default_rng(0)
    space = rng.normal(size=(40, 5))
    figure = report.scatter_grid(
        {"GT": (space, space)}, ("a", "b"), {"x": [0, 1], "y": [2]}, "title"
    )
    report.save_figure(figure, tmp_path / "scatter.png")
    figure = report.curves({"m": [(np.arange(3), np.arange(3))]}, {"GT": 1.0}, "x", "y", "t")
    report.save_figure(figure, tmp_path / "curves.png")
    for name in ("scatter.png", "curves.png"):
        assert Image.open(tmp_path / name).size[0] > 300
    assert not list(tmp_path.glob("*.half"))


def test_ticks_of_error_bars_are_the_values_of_all_methods():
    points = {"none": [], "some": [(0, 0.1, 0), (300, 0.2, 0)], "few": [(15, 0.1, 0.0)]}
    (axis,) = report.error_bars({"MRR": points}, "num_seeds", "title").axes
    assert {label.get_text() for label in axis.get_xticklabels()} == {"0", "15", "300"}
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["some", "few"]
    names = {"one": [("first", 0.1, 0), ("second", 0.2, 0)]}
    assert report.error_bars({"MRR": names}, "start", "title").axes[0].get_xticklabels()
