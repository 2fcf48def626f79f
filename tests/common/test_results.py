import dataclasses
import json
import statistics

import numpy as np
import pytest
from absl import logging
from matplotlib.colors import to_rgb
from matplotlib.font_manager import fontManager
from matplotlib.ft2font import FT2Font
from PIL import Image
from scipy.spatial.distance import pdist

from common.run import figures, records, results
from common.run.results import Row
from common.run.workdir import Workdir


def row(**values):
    required = {"experiment": "one", "dataset": "digits", "method": "a", "metric": "mrr"}
    return Row(**(required | {"mean": 0.4912, "std": 0.0021, "num_runs": 3} | values))


def test_rows_of_random_runs_are_averaged():
    values = [0.1, 0.4, 0.6]
    runs = [
        row(method=method, mean=value + offset, labels={"size": 4}, random_seed=random_seed)
        for random_seed, value in enumerate(values)
        for method, offset in (("gt", 0.0), ("seed", 1.0))
    ]
    first, second = results.averaged(runs)
    assert (first.method, second.method, first.num_runs) == ("gt", "seed", 3)
    assert first.mean == pytest.approx(statistics.mean(values))
    assert second.std == pytest.approx(statistics.stdev(values))
    assert first.labels == {"size": 4} and first.random_seed is None
    assert results.averaged(runs[:1])[0].std == 0
    assert len(results.averaged([*runs, row(method="gt", labels={"size": 5})])) == 3


def test_a_run_without_a_number_leaves_no_mean_and_no_best_value():
    runs = [row(mean=value, random_seed=seed) for seed, value in enumerate((0.1, np.nan, 0.6))]
    for average in (*results.averaged(runs), *results.averaged(runs[1:2])):
        assert np.isnan(average.mean)
    assert results.mean_and_deviation(results.averaged(runs)[0]) == "nan ± nan"


def test_results_json_has_no_word_that_other_readers_refuse(tmp_path):
    rows = [row(mean=np.nan, std=np.nan), row(labels={"low": -np.inf, "names": [np.nan, 1.0]})]
    records.finish(Workdir(tmp_path, {"limit": np.inf}), rows, "| a |")

    def refuse(word):
        raise ValueError(word)

    for name in ("config.json", "results.json"):
        text = (tmp_path / name).read_text()
        content = json.loads(text, parse_constant=refuse)
    undefined, other = map(results.from_fields, content)
    assert np.isnan([undefined.mean, undefined.std]).all()
    assert other == row(labels={"low": None, "names": [None, 1.0]})


def test_rows_are_selected_by_fields_and_labels():
    rows = [row(labels={"size": 4}), row(method="b", labels={"size": 4}), row(method="b")]
    assert results.select(rows, method="b", size=4) == [rows[1]]
    assert rows[2].get("size") is None


def test_finish_writes_rows_table_and_figures(tmp_path):
    work = Workdir(tmp_path, {})
    figure = figures.bars({"MRR": {"a": [(0.5, 0.1)]}}, ["digits"], "title")
    assert records.finish(work, [row(labels={"size": 4})], "| a |", {"bars": figure}) == "| a |"
    (written,) = json.loads((tmp_path / "results.json").read_text())
    assert Row(**written) == row(labels={"size": 4})
    assert (tmp_path / "table.md").read_text() == "| a |\n"
    assert Image.open(tmp_path / "bars.png").size[0] > 300


def test_figures_and_hyper_parameters_are_tensorboard_events(tmp_path):
    config = {"rate": 0.5, "sizes": [1, 2], "inner": {"steps": 3}}
    work = Workdir(tmp_path, config)
    for _ in range(2):  # a resumed run writes them anew
        figure = figures.bars({"MRR": {"a": [(0.5, 0.1)]}}, ["digits"], "title")
        records.finish(work, [row()], "| a |", {"bars": figure})
    (events,) = (tmp_path / "tensorboard/run").iterdir()
    content = events.read_bytes()
    assert content.count((tmp_path / "bars.png").read_bytes()) == 1
    assert all(name in content for name in (b"rate", b"sizes", b"[1, 2]", b"inner.steps"))


def test_a_quick_run_says_so_everywhere_and_shows_no_published_number(tmp_path):
    published = row(paper_value=0.99, paper_std=0.01, paper_dataset="words, 20,000 words")
    quick = [dataclasses.replace(published, quick=True)]
    figure = figures.bars({"MRR": {"a": [(0.5, 0.1)]}}, ["digits"], "title")
    table = results.pivot(quick, lines={"method": "Method"}, paper=True)
    shown = records.finish(Workdir(tmp_path, {"quick": True}), quick, table, {"bars": figure})
    assert "QUICK" in shown and ".99" not in shown and "Paper" not in shown
    assert "QUICK" in (tmp_path / "table.md").read_text()
    assert figure.get_suptitle() == "QUICK: title"
    (written,) = json.loads((tmp_path / "results.json").read_text())
    assert written["quick"] and written["paper_value"] is None and written["paper_dataset"] is None
    with_number = dataclasses.replace(quick[0], paper_value=0.99)
    assert with_number.paper_value is None


def test_headers_say_on_how_many_items_the_paper_and_we_measured():
    rows = [row(paper_value=0.99, paper_dataset="FastText, 20,000 words", num_items=1_000)]
    rows += [row(metric="jaccard", num_items=1_000)]
    header = results.pivot(rows, lines={"method": "Method"}, paper=True).splitlines()[0]
    cells = [cell.strip() for cell in header.strip("|").split("|")]
    assert cells == ["Method", "MRR (1,000 items)", "Jaccard", "Paper (20,000 words): MRR"]


def test_pivot_has_a_line_for_each_method_and_a_column_for_each_metric():
    rows = [
        row(paper_value=0.11),
        row(metric="jaccard", mean=0.2),
        row(method="b", num_runs=1),
    ]
    lines = results.pivot(rows, lines={"method": "Method"}, paper=True, paper_digits=2).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["Method", "MRR", "Jaccard", "Paper: MRR"]
    assert cells[2:] == [["a", ".491 ± .002", ".200 ± .002", ".11"], ["b", ".491", "-", "-"]]


def test_markdown_is_a_table_of_equal_widths():
    text = results.markdown(["a", "long name"], [["1", "2"], ["333", "4"]])
    assert text.splitlines()[1] == "|-----|-----------|"
    assert len({len(line) for line in text.splitlines()}) == 1


def test_plus_minus_omits_the_leading_zero():
    assert results.plus_minus(0.4912, 0.0021, 3) == ".491 ± .002"
    assert results.plus_minus(1.0, 0.0, 2) == "1.00 ± .00"
    assert results.plus_minus(-0.05, 0.01, 2) == "-.05 ± .01"
    assert results.plus_minus(-0.001, 0.01, 2) == ".00 ± .01"
    assert results.plus_minus(10.05, 0.01, 2) == "10.05 ± .01"
    assert results.plus_minus(None, None, 3) == "-"
    assert results.plus_minus(0.5, None, 3) == ".500"
    assert results.mean_and_deviation(row(num_runs=1)) == ".491"


def test_figures_are_written_as_png(tmp_path):
    space = np.random.default_rng(0).normal(size=(40, 5))
    groups = {"x": [0, 1], "y": [2]}
    figure = figures.scatter_grid({"GT": (space, space)}, ("a", "b"), groups, "title")
    figures.save_figure(figure, tmp_path / "scatter.png")
    assert Image.open(tmp_path / "scatter.png").size[0] > 300


def word_figure(folder, word, caplog):
    caplog.clear()
    points = {"one": [(word, 0.1, 0.0)]}
    figures.save_figure(figures.error_bars({"MRR": points}, "", word), folder / "word.png")
    warned = [record.getMessage() for record in caplog.records]
    return np.asarray(Image.open(folder / "word.png").convert("L")), warned


def test_characters_are_drawn_by_a_font_that_has_them(tmp_path, caplog):
    """Matplotlib comes with fonts that have signs which its font for texts lacks."""
    has, lacks = (
        set(FT2Font(fontManager.findfont(name)).get_charmap())
        for name in ("STIXGeneral", "DejaVu Sans")
    )
    sign = chr(max(has - lacks))
    drawn, warned = word_figure(tmp_path, 3 * sign, caplog)
    assert not warned
    empty, _ = word_figure(tmp_path, " ", caplog)
    assert (drawn == 0).sum() > (empty == 0).sum() + 50
    assert figures._families({ord(sign)}) and not figures._families(set())


def test_characters_that_no_font_has_are_named_once(tmp_path, caplog):
    logging._log_counter_per_token.clear()
    warned = [word_figure(tmp_path, word, caplog)[1] for word in ("語 \U0010fffd", "語")]
    assert len(warned[0]) == 1 and "no font of this machine has" in warned[0][0]
    assert not warned[1]


def test_error_bars_have_ticks_at_the_values_of_all_methods():
    points = {"none": [], "some": [(0, 0.1, 0), (300, 0.2, 0)], "few": [(15, 0.1, 0.0)]}
    figure = figures.error_bars({"MRR": points}, "num_pairs", "title")
    (axis,) = figure.axes
    assert {label.get_text() for label in axis.get_xticklabels()} == {"0", "15", "300"}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["some", "few"]
    names = {"one": [("first", 0.1, 0), ("second", 0.2, 0)]}
    assert figures.error_bars({"MRR": names}, "start", "title").axes[0].get_xticklabels()


def test_a_method_looks_the_same_in_all_figures_and_not_by_colour_alone():
    known = [f"method {i}" for i in range(10)]
    looks = figures.styles(known)
    assert len({look.marker for look in looks.values()}) == len(known)
    assert len({(look.colour, look.dashes) for look in looks.values()}) == len(known)
    chosen = figures.styles(["new", *known[3:5]], known)
    assert all(chosen[name] == looks[name] for name in known)
    assert chosen["new"].marker not in {look.marker for look in looks.values()}
    points = [(0, 0.1, 0.0), (1, 0.2, 0.0)]
    figure = figures.error_bars({"MRR": {known[4]: points}}, "pairs", "title", known)
    (line,) = (line for line in figure.axes[0].lines if line.get_marker() == looks[known[4]].marker)
    assert line.get_color() == looks[known[4]].colour


def test_colours_differ_for_eyes_without_red_or_green_receptors():
    """Machado, Oliveira and Fernandes 2009, severity 1: no two are nearer than Okabe and Ito's."""
    deuteranopia = [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]
    protanopia = [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]
    values = np.array([to_rgb(colour) for colour in figures.COLOURS])
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    for seen in (np.eye(3), deuteranopia, protanopia):
        lab = _lab(np.clip(linear @ np.transpose(seen), 0, 1))
        assert pdist(lab).min() > 16, seen


def _lab(linear):
    """CIELAB of linear sRGB, for the white of D65."""
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = linear @ np.transpose(to_xyz) / [0.9505, 1.0, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


def test_error_bars_are_within_their_panels_and_compared_panels_share_an_axis():
    panels = {"a": {"m": [(1, 0.9, 0.4)]}, "b": {"m": [(1, 0.1, 0.3)]}}
    figure = figures.small_multiples(panels, {}, "MRR", "title")
    low, high = figure.axes[0].get_ylim()
    assert low < -0.2 and high > 1.3
    left, right = figures.error_bars(panels, "pairs", "title", sharey=True).axes
    assert left.get_ylim() == right.get_ylim()


def test_small_multiples_have_a_panel_for_each_value_and_mark_the_one_in_use():
    panels = {
        "steps": {"a": [(10, 0.1, 0.0), (300, 0.9, 0.1)], "b": [(10, 0.2, 0.0)]},
        "plan": {"a": [("hard", 0.5, 0.0), ("soft", 0.4, 0.0)]},
    }
    figure = figures.small_multiples(panels, {"steps": 300, "plan": "hard"}, "MRR", "title")
    steps, plan = figure.axes
    assert [axis.get_xlabel() for axis in figure.axes] == ["steps", "plan"]
    assert [label.get_text() for label in steps.get_xticklabels()] == ["10", "300"]
    assert steps.lines[-1].get_xdata() == [300, 300] and plan.lines[-1].get_xdata() == ["hard"] * 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
