"""Random graphs and their shortest paths."""

import networkx as nx
import numpy as np
import pytest

from configs.wasserstein_embed.graphs import get_config
from wasserstein_embed import graphs

OPTIONS = get_config().graph_options.to_dict()


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
