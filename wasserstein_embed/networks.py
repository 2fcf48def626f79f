"""Graphs, drawn by networkx or read from a file, and the shortest paths in them."""

from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
from absl import logging
from jaxtyping import Float
from ml_collections import ConfigDict
from scipy.sparse import csgraph

from common.errors import UserError

TRIES = 100  # draws until a graph is connected
MOST = 10_000  # nodes of a file: the distances between all of them take 800 MB

# name -> (config, random seed) -> graph
GENERATORS: dict[str, Callable[[ConfigDict, int], nx.Graph]] = {
    "scale_free": lambda config, seed: nx.barabasi_albert_graph(
        config.num_nodes, config.attach, seed=seed
    ),
    "small_world": lambda config, seed: nx.watts_strogatz_graph(
        config.num_nodes, config.ring, config.rewire, seed=seed
    ),
    "block": lambda config, seed: nx.stochastic_block_model(
        [len(part) for part in np.array_split(np.arange(config.num_nodes), config.blocks)],
        np.where(np.eye(config.blocks, dtype=bool), config.within, config.between).tolist(),
        seed=seed,
    ),
    "tree": lambda config, seed: nx.random_labeled_tree(config.num_nodes, seed=seed),
    "cycle": lambda config, seed: nx.cycle_graph(config.num_nodes),
}
# Readers by the file's ending; anything else is a list of edges, one `a b` a line, `#` comments.
READERS = {
    ".gml": lambda path: nx.read_gml(path, label="id"),
    ".graphml": nx.read_graphml,
    ".gexf": nx.read_gexf,
    ".net": nx.read_pajek,
    ".adjlist": nx.read_adjlist,
    ".g6": nx.read_graph6,
    ".csv": lambda path: nx.read_edgelist(path, delimiter=",", data=False),
}


def load(config: ConfigDict) -> list[nx.Graph]:
    """The graphs of a run, of one size each: random draws, or one file's graph for every start.

    Args:
      config: `graph`, a name of `GENERATORS` or a path, `num_graphs`, `largest_component`, and what
        the generators take.

    Raises:
      UserError: no such graph, one that can't be read, or one that is not connected.
    """
    if config.graph not in GENERATORS:
        graph = read(Path(config.graph), config.largest_component)
        return [graph] * config.num_graphs
    return [draw(config, seed) for seed in range(config.num_graphs)]


def draw(config: ConfigDict, seed: int) -> nx.Graph:
    """A connected random graph; draws that are not connected are passed over.

    Raises:
      UserError: values that the generator does not take, or no connected graph.
    """
    for attempt in range(TRIES):
        try:
            graph = GENERATORS[config.graph](config, seed + 1_000_003 * attempt)
        except nx.NetworkXException as error:
            raise UserError(
                f"There is no graph '{config.graph}' of these values: {error}"
            ) from error
        if len(graph) > 1 and nx.is_connected(graph):
            return graph
    raise UserError(
        f"None of {TRIES} draws of '{config.graph}' is connected: give more edges or nodes."
    )


def read(path: Path, largest_component: bool) -> nx.Graph:
    """Reads a graph; edges lose direction and weight, those from a node to itself are dropped.

    Args:
      path: a list of edges, or a format of networkx by its ending (`READERS`).
      largest_component: keep that alone; else a graph in pieces is an error.

    Raises:
      UserError: a file that is not there, can't be read or has no edges, or a graph in pieces.
    """
    if not path.is_file():
        raise UserError(
            f"The graph '{path}' is neither a file nor one of {', '.join(GENERATORS)}: correct "
            "--config.graph."
        )
    reader = READERS.get(path.suffix, lambda path: nx.read_edgelist(path, data=False))
    try:
        graph = nx.Graph(reader(path))
    except Exception as error:  # each format has exceptions of its own
        raise UserError(
            f"{path} can't be read as a graph ({error}): a list of edges has two names of nodes in "
            f"a line, other formats end in {', '.join(READERS)}."
        ) from error
    loops = nx.number_of_selfloops(graph)
    if loops:
        logging.warning("%s: %d edges from a node to itself are left out", path, loops)
        graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    if not graph.number_of_edges():
        raise UserError(f"{path} has no edge between two nodes: give a graph of two nodes or more.")
    pieces = sorted(nx.connected_components(graph), key=len, reverse=True)
    if len(pieces) > 1 and not largest_component:
        raise UserError(
            f"The graph of {path} is in {len(pieces)} pieces of {_sizes(pieces)} nodes, with no "
            "distance between them: give --config.largest_component to keep the largest."
        )
    if len(pieces[0]) > MOST:
        raise UserError(
            f"The graph of {path} has {len(pieces[0]):,} nodes: give one of {MOST:,} at most, "
            "since the distances between all of them are held."
        )
    return graph.subgraph(pieces[0]).copy()


def shortest_paths(graph: nx.Graph) -> Float[np.ndarray, "n n"]:
    """Numbers of edges between all nodes, in the order of `graph.nodes`."""
    return csgraph.shortest_path(nx.to_scipy_sparse_array(graph), unweighted=True, directed=False)


def _sizes(pieces: list) -> str:
    shown = [str(len(piece)) for piece in pieces[:4]]
    return ", ".join(shown) + (", ..." if len(pieces) > 4 else "")
