"""Random graphs, their shortest-path distances, and embeddings that are trained on them."""

from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
from absl import logging
from jaxtyping import Float
from scipy.sparse import csgraph

from common.errors import UserError, check_choice
from common.run import train
from common.run.workdir import Workdir
from wasserstein_embed import cloud, metric_embed
from wasserstein_embed.metric_embed import Data, Settings

MAX_SAMPLES = 100  # random graphs that are sampled until one is connected


def _block_model(n: int, blocks: int, p_in: float, p_out: float, seed: int) -> nx.Graph:
    sizes = [len(nodes) for nodes in np.array_split(np.arange(n), blocks)]
    probabilities = np.where(np.eye(blocks, dtype=bool), p_in, p_out)
    return nx.stochastic_block_model(sizes, probabilities.tolist(), seed=seed)


# Called with the number of nodes, the options of the config, and `seed`.
GENERATORS: dict[str, Callable[..., nx.Graph]] = {
    "scale_free": nx.barabasi_albert_graph,
    "small_world": nx.watts_strogatz_graph,
    "block": _block_model,
    "tree": nx.random_labeled_tree,
    "cycle": lambda n, seed: nx.cycle_graph(n),
}


def sample(name: str, num_nodes: int, options: Mapping[str, float], random_seed: int) -> nx.Graph:
    """The first connected graph of up to `MAX_SAMPLES` of a generator with its options.

    UserError: the generator is unknown or rejects its options, or no graph is connected.
    """
    check_choice("graph", name, GENERATORS)
    for attempt in range(MAX_SAMPLES):
        try:
            graph = GENERATORS[name](num_nodes, **options, seed=random_seed + 1_000_003 * attempt)
        except nx.NetworkXException as error:
            raise UserError(f"The options of the graph '{name}' are wrong: {error}.") from error
        if nx.is_connected(graph):
            return graph
    raise UserError(
        f"None of {MAX_SAMPLES} samples of '{name}' is connected: give more edges or fewer nodes."
    )


def shortest_paths(graph: nx.Graph) -> Float[np.ndarray, "n n"]:
    """Number of edges of the shortest path between all nodes, in the order of `graph.nodes`."""
    return csgraph.shortest_path(nx.to_scipy_sparse_array(graph), unweighted=True, directed=False)


def all_pairs(graphs: Sequence[nx.Graph]) -> Data:
    """Shortest-path distances of all pairs of nodes of each graph; all graphs have one size."""
    n = len(graphs[0])
    first, second = np.triu_indices(n, 1)
    offset = n * np.arange(len(graphs))[:, None]
    distance = np.concatenate([shortest_paths(graph)[first, second] for graph in graphs])
    return Data(
        first=jnp.asarray((offset + first).ravel()),
        second=jnp.asarray((offset + second).ravel()),
        distance=jnp.asarray(distance, jnp.float32),
    )


def distortions(
    settings: Settings,
    pairs: Data,
    *,
    num_graphs: int,
    measure_iterations: int,
    checkpoint_every: int,
    work: Workdir,
    task: str,
) -> list[float]:
    """Trains the embeddings of all graphs together, and returns the distortion of each.

    The random seed of a graph is its number. The distances that are measured take
    `measure_iterations` of Sinkhorn, from a cold start; `checkpoint_every` counts the steps of
    `common.run.train.run`.
    """
    keys = jax.vmap(jax.random.key)(jnp.arange(num_graphs))
    num_nodes = (int(pairs.second.max()) + 1) // num_graphs
    state = train.run(
        metric_embed.step,
        metric_embed.init(settings, num_nodes, keys),
        pairs,
        settings,
        num_steps=settings.steps // settings.updates_per_step,
        chunk=checkpoint_every,
        work=work,
        part=task,
    )
    distance = settings.distance(settings.epsilon[1], measure_iterations, implicit=False)
    by_graph = Data(*(array.reshape(num_graphs, -1) for array in pairs))
    first, second = by_graph.first[0], by_graph.second[0]  # the same nodes within each graph
    values = []
    for nodes, expected in zip(jnp.split(state.x, num_graphs), by_graph.distance, strict=True):
        if settings.geometry == "wasserstein":
            clouds = cloud.Clouds(nodes)
            embedded = cloud.pair_distances(clouds, first, second, distance)
            converged = float(cloud.fraction_converged(clouds, first, second, distance))
            if converged < 1:
                logging.warning("%s: %.1f%% of the plans have converged", task, 100 * converged)
        else:
            vector_distance = metric_embed.VECTOR_DISTANCES[settings.geometry]
            embedded = vector_distance(nodes[first], nodes[second])
        values.append(float(metric_embed.distortion(embedded, expected)))
    return values
