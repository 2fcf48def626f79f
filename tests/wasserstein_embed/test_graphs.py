"""The graph experiment: a small run, a killed one, a graph from a file, and wrong input."""

import json
from pathlib import Path

import pytest

from common import cli, train
from common.errors import UserError
from common.workdir import Workdir
from configs.wasserstein_embed.graphs import get_config
from wasserstein_embed import paper_graphs
from wasserstein_embed.graphs import graphs

ROOT = Path(__file__).parents[2]
SMALL = {
    "num_graphs": 2,
    "num_nodes": 10,
    "steps.vectors": 20,
    "steps.clouds": 20,
    "chunk": 1,
    "points": (2,),
    "dimensions": (4,),
    "cloud_dimensions": (2,),
    "methods": ("euclidean", "wasserstein"),
}


def small(**changes):
    config = get_config()
    config.update_from_flattened_dict(SMALL | changes)
    return cli.settle(config)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    work = Workdir(tmp_path_factory.mktemp("whole"), {})
    return work.path, graphs(small(), work, Path())


def test_a_run_leaves_rows_tables_and_figure(whole):
    path, table = whole
    rows = json.loads((path / "results.json").read_text())
    assert {(r["method"], r["recipe"], r["size"], r["dim"]) for r in rows} == {
        (method, recipe, size, dim)
        for recipe in ("reference", "tuned")
        for method, size, dim in (
            ("euclidean", 4, 4),
            ("wasserstein_r2", 2, 4),
        )
    }
    for row in rows:
        assert row["metric"] == "distortion" and row["num_seeds"] == 2 and not row["standin"]
        assert 0 < row["mean"] < 2 and row["std"] >= 0
        assert row["paper_value"] is None  # ten nodes are not the reference's 64
    assert "The reference, means" not in table and "At equal numbers of coordinates" in table
    assert "Seconds of training" in (path / "table.md").read_text()
    assert (path / "distortion.png").stat().st_size > 0
    records = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    assert {r["step"] for r in records if r["part"] == "tuned-euclidean-4"} == {1, 2}


def test_a_killed_run_goes_on_to_the_same_rows(whole, tmp_path, monkeypatch):
    expected, _ = whole
    chunk, calls = train._chunk, []

    def killed(*args):
        calls.append(args)
        if len(calls) in (2, 5):  # in the middle of a vector's training, and of a cloud's
            raise KeyboardInterrupt
        return chunk(*args)

    monkeypatch.setattr(train, "_chunk", killed)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            graphs(small(), Workdir(tmp_path, {}), Path())
    graphs(small(), Workdir(tmp_path, {}), Path())
    for name in ("results.json", "metrics.jsonl"):
        assert (tmp_path / name).read_text() == (expected / name).read_text()


def test_a_graph_from_a_file(tmp_path):
    (tmp_path / "ring.txt").write_text("a b\nb c\nc d\nd a\n")
    config = small(graph=str(tmp_path / "ring.txt"), methods=("hyperbolic", "kl"), dimensions=(2,))
    table = graphs(config, Workdir(tmp_path / "run", {}), Path())
    assert "2 random starts" in table and "| Hyperbolic | tuned " in table
    rows = json.loads((tmp_path / "run/results.json").read_text())
    assert {row["dataset"] for row in rows} == {"ring.txt, 4 nodes"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"graph": "none.txt"}, "neither a file nor one of"),
        ({"methods": ("euclid",)}, "no embedding 'euclid'"),
        ({"recipes": ("best",)}, "no recipe 'best'"),
        ({"points": (0, 2)}, "points is"),
        ({"steps.clouds": 15}, "a multiple of 10"),
        ({"num_graphs": 0}, "num_graphs is 0"),
        ({"tuned.wasserstein.epsilon": (1.0, 0.0)}, "a positive number"),
        ({"tuned.wasserstein.epsilon": ()}, "give two numbers"),
        ({"reference.euclidean.init": (1.0,)}, "reference.euclidean.init is .* give two numbers"),
        ({"tuned.euclidean.schedule": "linear"}, "no schedule 'linear'"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path, change, says):
    with pytest.raises(UserError, match=says):
        graphs(small(**change), Workdir(tmp_path, {}), Path())


def test_reference_numbers_are_those_of_their_graphs_alone():
    config = get_config()
    assert paper_graphs.value(config, "wasserstein_r2", 10) == 0.106
    assert paper_graphs.value(config, "kl", 40) == 0.026
    assert paper_graphs.value(config, "wasserstein_r4", 10) is None
    assert paper_graphs.value(config, "euclidean", 4) is None
    config.attach = 3
    assert paper_graphs.value(config, "wasserstein_r2", 10) is None
