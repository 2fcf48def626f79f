"""Graphs drawn and read, their shortest paths, and files that are wrong."""

import networkx as nx
import numpy as np
import pytest

from common.errors import UserError
from configs.wasserstein_embed.graphs import get_config
from wasserstein_embed import networks


def config(**values):
    made = get_config()
    made.update(values)
    return made


@pytest.mark.parametrize("name", networks.GENERATORS)
def test_generators_give_connected_graphs_of_one_size(name):
    drawn = networks.load(config(graph=name, num_graphs=3, num_nodes=30))
    assert len(drawn) == 3
    for graph in drawn:
        assert len(graph) == 30 and nx.is_connected(graph)
    again = networks.load(config(graph=name, num_graphs=1, num_nodes=30))[0]
    assert set(again.edges) == set(drawn[0].edges)
    assert name == "cycle" or set(drawn[0].edges) != set(drawn[1].edges)


def test_shortest_paths_are_networkxs_and_those_of_a_hand_worked_graph():
    graph = networks.draw(config(), 0)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    expected = [[lengths[a][b] for b in graph.nodes] for a in graph.nodes]
    np.testing.assert_array_equal(networks.shortest_paths(graph), expected)
    square_with_tail = nx.Graph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("d", "e")])
    np.testing.assert_array_equal(networks.shortest_paths(square_with_tail)[0], [0, 1, 2, 1, 2])


def test_files_of_several_formats(tmp_path):
    edges = tmp_path / "mine.txt"
    edges.write_text("# a comment\na b 0.5\nb c 2\nb a 1\nc c 1\n")
    graph = networks.read(edges, False)
    assert sorted(map(sorted, graph.edges)) == [["a", "b"], ["b", "c"]]  # no loop, no direction
    for ending, write in ((".gml", nx.write_gml), (".graphml", nx.write_graphml)):
        path = tmp_path / f"karate{ending}"
        write(nx.Graph(nx.karate_club_graph().edges), path)
        assert networks.read(path, False).number_of_edges() == 78
    same = networks.load(config(graph=str(edges), num_graphs=2))
    assert len(same) == 2 and same[0] is same[1]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none.txt", None, "neither a file nor one of scale_free"),
        ("empty.txt", "", "no edge between two nodes"),
        ("loop.txt", "1 1\n", "no edge between two nodes"),
        ("word.txt", "lonely\n", "no edge between two nodes"),
        ("pieces.txt", "1 2\n2 3\n4 5\n", "2 pieces of 3, 2 nodes.*largest_component"),
        ("broken.gml", "graph [ node", "can't be read as a graph"),
        ("binary.txt", b"\xff\xfe\x00", "can't be read as a graph"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path, name, content, says):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UserError, match=says):
        networks.read(path, False)


def test_a_graph_whose_distances_would_not_fit(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("".join(f"{i} {i + 1}\n" for i in range(networks.MOST)))
    with pytest.raises(UserError, match="has 10,001 nodes: give one of 10,000 at most"):
        networks.read(path, False)


def test_the_largest_component_and_impossible_values(tmp_path):
    path = tmp_path / "pieces.txt"
    path.write_text("1 2\n2 3\n4 5\n")
    assert len(networks.read(path, True)) == 3
    with pytest.raises(UserError, match="of these values"):
        networks.draw(config(attach=64), 0)
    with pytest.raises(UserError, match="None of 100 draws"):
        networks.draw(config(graph="block", between=0.0), 0)
