"""Random graphs, and the graph experiment: a small run, a killed one, and wrong names."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from common.errors import UserError
from common.run.workdir import Workdir
from configs.wasserstein_embed.graphs import get_config
from wasserstein_embed import graphs
from wasserstein_embed.experiments import graphs as experiment

SMALL = {
    "num_graphs": 2,
    "num_nodes": 10,
    "steps.vectors": 20,
    "steps.clouds": 20,
    "checkpoint_every": 1,
    "points": (2,),
    "dimensions": (4,),
    "cloud_dimensions": (2,),
    "methods": ("euclidean", "wasserstein"),
}
OPTIONS = get_config().graph_options.to_dict()


def run(folder, **changes):
    config = get_config()
    config.update_from_flattened_dict(SMALL | changes)
    return experiment.run(config, Workdir(folder, {}), Path())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, run(folder)


@pytest.mark.parametrize("name", graphs.GENERATORS)
def test_generators_give_connected_reproducible_graphs(name):
    first, second, again = (graphs.sample(name, 30, OPTIONS[name], seed) for seed in (0, 1, 0))
    assert all(len(graph) == 30 and nx.is_connected(graph) for graph in (first, second))
    assert set(again.edges) == set(first.edges)
    assert name == "cycle" or set(first.edges) != set(second.edges)


def test_shortest_paths_equal_those_of_networkx_and_of_a_small_example():
    graph = graphs.sample("scale_free", 64, {"m": 2}, 0)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    expected = [[lengths[a][b] for b in graph.nodes] for a in graph.nodes]
    np.testing.assert_array_equal(graphs.shortest_paths(graph), expected)
    square_with_tail = nx.Graph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("d", "e")])
    np.testing.assert_array_equal(graphs.shortest_paths(square_with_tail)[0], [0, 1, 2, 1, 2])


@pytest.mark.slow
def test_a_run_writes_rows_tables_and_a_figure(whole):
    path, table = whole
    rows = json.loads((path / "results.json").read_text())
    assert [(r["method"], r["labels"], r["dim"]) for r in rows] == [
        (method, {"recipe": recipe, "size": size}, 4)
        for recipe in ("published", "tuned")
        for method, size in (("euclidean", 4), ("wasserstein_r2", 2))
    ]
    for row in rows:
        assert row["metric"] == "distortion" and row["num_runs"] == 2 and not row["proxy"]
        assert 0 < row["mean"] < 2 and row["std"] >= 0
        assert row["paper_value"] is None  # the reference has graphs of 64 nodes
    assert "## Clouds, tuned recipe\n" in table and "## Equal numbers of coordinates" in table
    assert (path / "table.md").read_text().strip() == table
    assert (path / "distortion.png").stat().st_size > 0
    records = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    assert {r["step"] for r in records if r["part"] == "tuned-euclidean-4"} == {1, 2}


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_rows_and_records(whole, tmp_path, assert_resumes):
    # Before the second chunk of the training of vectors, and of clouds.
    assert_resumes(lambda: run(tmp_path), tmp_path, whole[0], 2, 3)
    assert (tmp_path / "metrics.jsonl").read_text() == (whole[0] / "metrics.jsonl").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"graph": "square"}, "no graph 'square'"),
        ({"methods": ("euclid",)}, "no geometry 'euclid'"),
        ({"recipes": ("best",)}, "no recipe 'best'"),
        ({"tuned.euclidean.schedule": "linear"}, "no schedule 'linear'"),
        ({"num_graphs": 0}, "num_graphs is 0: choose at least 1"),
        ({"num_nodes": 1}, "num_nodes is 1: choose at least 2"),
        ({"tuned.wasserstein.epsilon": (0.3, 0.0)}, "from 0.3 to 0 as a geometric series"),
        ({"graph_options.scale_free": {"m": 64}}, "options of the graph 'scale_free' are wrong"),
        ({"graph": "block", "graph_options.block.p_out": 0.0}, "None of 100 samples"),
    ],
)
def test_mistakes_are_user_errors(tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        run(tmp_path, **change)
