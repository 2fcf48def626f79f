import dataclasses
import json
import statistics

import numpy as np
import pytest
from absl import logging
from matplotlib.colors import to_rgb
from PIL import Image
from scipy.spatial.distance import pdist

from anchor_opt.reports.retrieval import scatter_grid
from common.run import figures, records, results
from common.run.results import Published, Row
from common.run.workdir import Workdir
from embed_match.reports.shared import bars


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
    records.finish(Workdir(tmp_path, {"limit": np.inf}), rows, report)

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


def test_a_frame_has_fields_and_labels_and_its_words_stand_in_tables():
    rows = [row(num_pairs=n, labels={"size": 4, "dim": n}) for n in (15, 0)]
    rows += [row(method="b", num_pairs=15, labels={"size": 5})]
    table = results.frame(rows)
    assert list(table["size"]) == [4, 4, 5] and list(table.label_dim[:2]) == [15, 0]
    assert results.points(table, "method", "num_pairs") == {
        "a": [(15, 0.4912, 0.0021), (0, 0.4912, 0.0021)],
        "b": [(15, 0.4912, 0.0021)],
    }
    table["method"] = table.method.map({"a": "ours", "b": "theirs"})
    text = results.pivot(table, lines={"method": "M", "label_dim": "D"}, columns="num_pairs")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    assert lines[0] == ["M", "D", "15", "0"]
    assert [line[:2] for line in lines[2:]] == [["ours", "15"], ["ours", "0"], ["theirs", "-"]]
    assert results.frame([]).empty and "metric" in results.frame([])


class report:
    """Of an experiment whose table is empty, and whose source prints a number."""

    @staticmethod
    def published(row):
        on = {"mrr": Published(0.11, dataset="FastText, 20,000 words")}
        return on.get(row.metric) if row.method == "a" else None

    @staticmethod
    def tables(record):
        table = results.pivot(record.rows, lines={"method": "M"}, published=report.published)
        return {"T": table if record.config.get("quick") else "| a |"}

    @staticmethod
    def figures(record):
        return {"bars": bars({"MRR": {"a": [(0.5, 0.1)]}}, ["digits"], "title")}


def test_finish_writes_rows_table_and_figures(tmp_path):
    work, appendix = Workdir(tmp_path, {}), {"A": "| b |"}
    printed = records.finish(work, [row(labels={"size": 4})], report, appendix=appendix)
    assert printed == "## T\n\n| a |"
    (written,) = json.loads((tmp_path / "results.json").read_text())
    assert Row(**written) == row(labels={"size": 4})
    assert (tmp_path / "table.md").read_text() == "## T\n\n| a |\n\n## A\n\n| b |\n"
    assert Image.open(tmp_path / "bars.png").size[0] > 300


def test_tables_are_printed_before_figures_are_drawn(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(report, "figures", lambda record: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        records.finish(Workdir(tmp_path, {}), [row()], report)
    assert capsys.readouterr().out == "## T\n\n| a |\n"


def test_figures_and_hyper_parameters_are_tensorboard_events(tmp_path):
    config = {"rate": 0.5, "sizes": [1, 2], "inner": {"steps": 3}}
    work = Workdir(tmp_path, config)
    for _ in range(2):  # a resumed run writes them anew
        records.finish(work, [row()], report)
    (events,) = (tmp_path / "tensorboard/run").iterdir()
    content = events.read_bytes()
    assert content.count((tmp_path / "bars.png").read_bytes()) == 1
    assert all(name in content for name in (b"rate", b"sizes", b"[1, 2]", b"inner.steps"))


def test_a_quick_run_says_so_everywhere_and_shows_no_published_number(tmp_path):
    figure, quick = report.figures(None)["bars"], [row(quick=True)]
    work = Workdir(tmp_path, {"quick": True})
    shown = records.finish(work, quick, report, figures={"bars": figure})
    assert "QUICK" in shown and ".11" not in shown and "Paper" not in shown
    assert "QUICK" in (tmp_path / "table.md").read_text()
    assert figure.get_suptitle() == "QUICK: title"
    (written,) = json.loads((tmp_path / "results.json").read_text())
    assert written["quick"]


@pytest.mark.parametrize(("num_items", "mrr"), [(None, "MRR"), (1_000, "MRR (1,000 items)")])
def test_pivot_has_a_line_for_each_method_and_a_column_for_each_metric(num_items, mrr):
    """The headers say on how many items the paper and we measured."""
    rows = [row(), row(metric="jaccard", mean=0.2), row(method="b", num_runs=1)]
    rows = [dataclasses.replace(one, num_items=num_items) for one in rows]
    number = {"published": report.published, "paper_digits": 2}
    lines = results.pivot(rows, lines={"method": "Method"}, **number).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["Method", mrr, "Jaccard", "Paper (20,000 words): MRR"]
    assert cells[2:] == [["a", ".491 ± .002", ".200 ± .002", ".11"], ["b", ".491", "-", "-"]]


def test_plus_minus_omits_the_leading_zero():
    assert results.plus_minus(0.4912, 0.0021, 3) == ".491 ± .002"
    assert results.plus_minus(1.0, 0.0, 2) == "1.00 ± .00"
    assert results.plus_minus(-0.05, 0.01, 2) == "-.05 ± .01"
    assert results.plus_minus(-0.001, 0.01, 2) == ".00 ± .01"
    assert results.plus_minus(10.05, 0.01, 2) == "10.05 ± .01"
    assert results.plus_minus(None, None, 3) == "-"
    assert results.plus_minus(0.5, None, 3) == ".500"
    assert results.mean_and_deviation(row(num_runs=1)) == ".491"


def test_every_kind_of_figure_is_drawn(tmp_path, caplog):
    """A character that no font has is named once, and error bars end at the range of the metric."""
    space = np.random.default_rng(0).normal(size=(40, 5))
    panels = {"a": {"語 \U0010fffd": [(1, 0.9, 0.4)]}, "b": {"m": [("x", 0.1, 0.3)]}}
    drawn = {
        "scatter": scatter_grid({"GT": (space,) * 2}, ("a", "b"), {"x": [0, 2]}, "title"),
        "compared": figures.error_bars(panels, "pairs", "title", sharey=True),
        "multiples": figures.small_multiples(panels, {"a": 1}, "MRR", "title"),
        "bars": bars({"MRR": {"a": [(0.5, 0.6)]}}, ["x"], "t", beside={"a": (0.3,)}),
    }
    logging._log_counter_per_token.clear()
    for name, figure in drawn.items():
        figures.save_figure(figure, tmp_path / f"{name}.png")
        assert Image.open(tmp_path / f"{name}.png").size[0] > 300
    (warned,) = [record.getMessage() for record in caplog.records]
    assert "no font of this machine has" in warned
    for name in ("compared", "multiples"):
        ends = [x.get_segments()[0][:, 1] for axis in drawn[name].axes for x in axis.collections]
        np.testing.assert_allclose(ends, [[0.5, 1.0], [0.0, 0.4]])


def test_methods_differ_in_every_figure_by_marker_and_by_colour_or_dashes():
    known = [f"method {i}" for i in range(10)]
    looks = figures.styles(known)
    assert len({look.marker for look in looks.values()}) == len(known)
    assert len({(look.colour, look.dashes) for look in looks.values()}) == len(known)
    chosen = figures.styles(["new", *known[3:5]], known)
    assert all(chosen[name] == looks[name] for name in known)
    assert chosen["new"].marker not in {look.marker for look in looks.values()}


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
