"""Random graphs, distances of vectors by independent formulas, and embeddings known to be exact."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import entropy

from configs.wasserstein_embed.graphs import get_config
from wasserstein_embed import graphs, metric_embed
from wasserstein_embed.cloud import WarmStart
from wasserstein_embed.metric_embed import Data, Rows, Settings

OPTIONS = get_config().graph_options.to_dict()
RNG = np.random.default_rng(0)
TRAINING = {"init_range": (0.0, 1.0), "steps": 3, "learning_rate": 0.1}
step = jax.jit(metric_embed.step, static_argnames="settings")


def path_graph(nodes):
    first, second = np.triu_indices(nodes, 1)
    distance = jnp.asarray(second - first, jnp.float32)
    return Data(jnp.asarray(first), jnp.asarray(second), distance)


def test_hyperbolic_distance_equals_the_formula_by_arcosh():
    x, y = (0.5 * RNG.normal(size=(20, 3)) / 3**0.5 for _ in range(2))
    squares = ((x - y) ** 2).sum(1)
    ratio = 1 + 2 * squares / ((1 - (x**2).sum(1)) * (1 - (y**2).sum(1)))
    distances = metric_embed.hyperbolic(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(distances, np.arccosh(ratio), rtol=1e-4)
    radius = 0.9  # at distance 2 artanh r from the centre
    origin = jnp.zeros((1, 2))
    distances = metric_embed.hyperbolic(origin, jnp.array([[radius, 0.0]]))
    np.testing.assert_allclose(distances, 2 * np.arctanh(radius), rtol=1e-5)
    near = metric_embed.hyperbolic(origin, origin + 1e-6)  # where arcosh in float32 gives 0
    np.testing.assert_allclose(near, 2e-6 * 2**0.5, rtol=1e-4)


def test_polar_coordinates_have_the_distances_of_the_ball():
    x, y = RNG.normal(size=(2, 20, 3))
    x[0], y[1] = 0, x[1]
    ball = [
        np.tanh(np.linalg.norm(z, axis=1) / 2) / np.linalg.norm(z, axis=1) for z in (x + 1e-9, y)
    ]
    expected = metric_embed.hyperbolic(
        *(jnp.asarray(s[:, None] * z) for s, z in zip(ball, (x, y), strict=True))
    )
    distances = metric_embed.polar_hyperbolic(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(distances, expected, rtol=1e-4, atol=1e-5)
    far, opposite = jnp.array([[20.0, 0.0]]), jnp.array([[20.0, 1e-3]])
    np.testing.assert_allclose(metric_embed.polar_hyperbolic(far, -far), 40, rtol=1e-6)
    # cosh d - 1 = sinh(20)^2 (1 - cos t), with t about 5e-5
    expected = np.arccosh(1 + np.sinh(20.0) ** 2 * (1 - np.cos(5e-5)))
    np.testing.assert_allclose(metric_embed.polar_hyperbolic(far, opposite), expected, rtol=1e-4)
    total = jax.grad(lambda z: metric_embed.polar_hyperbolic(z, far).sum())
    assert jnp.isfinite(total(jnp.zeros((1, 2)))).all() and jnp.isfinite(total(far)).all()


def test_kl_equals_relative_entropy_of_scipy():
    x, y = RNG.normal(size=(2, 10, 4))
    distances = metric_embed.kl(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(distances, entropy(softmax(x, 1), softmax(y, 1), axis=1), rtol=1e-4)
    assert not np.allclose(distances, metric_embed.kl(jnp.asarray(y), jnp.asarray(x)), rtol=1e-2)


def test_distortion_is_the_mean_relative_error():
    value = metric_embed.distortion(jnp.array([1.5, 2.0, 2.0]), jnp.array([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(value, (0.5 + 0 + 0.5) / 3)


def test_a_path_on_a_line_has_no_distortion():
    data, nodes = path_graph(6), 6
    line = jnp.arange(nodes, dtype=jnp.float32)
    distances = metric_embed.euclidean(line[data.first, None], line[data.second, None])
    assert metric_embed.distortion(distances, data.distance) < 1e-6
    # The divergence between clouds of coinciding points is the distance between the points.
    x = jnp.repeat(jnp.stack([line, jnp.zeros(nodes)], axis=1)[:, None], 4, axis=1)
    settings = Settings(geometry="wasserstein", shape=(4, 2), debiased=True, **TRAINING)
    for warm_start in (None, WarmStart.zeros(len(data.distance), nodes, 4)):
        rows = Rows(data, jnp.arange(nodes), warm_start)
        distances, _ = metric_embed.pair_distances(x, rows, 0.1, settings)
        assert metric_embed.distortion(distances, data.distance) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("geometry", "shape", "bound"),
    [
        ("euclidean", (2,), 0.02),
        ("hyperbolic", (2,), 0.1),
        ("polar_hyperbolic", (2,), 0.1),
        ("wasserstein", (2, 2), 0.03),
    ],
)
def test_training_embeds_a_path(geometry, shape, bound):
    data, nodes = path_graph(5), 5
    training = {"init_range": (-0.5, 0.5), "steps": 400, "learning_rate": 0.05}
    solver = {"epsilon": (0.3, 0.05), "debiased": True, "iterations": 3, "warm_start": True}
    settings = Settings(geometry=geometry, shape=shape, schedule="cosine", **training, **solver)
    state = metric_embed.init(settings, nodes, jax.random.split(jax.random.key(0), 1))
    for index in range(settings.steps // metric_embed.UPDATES_PER_STEP):
        state, metrics = step(state, index, data, settings)
    assert metrics["distortion"] < bound
    if geometry == "hyperbolic":
        assert jnp.linalg.norm(state.x, axis=1).max() < 1


@pytest.mark.slow
def test_graphs_trained_together_equal_graphs_trained_alone():
    path = path_graph(4)
    two_paths = Data(
        jnp.concatenate([path.first, path.first + 4]),
        jnp.concatenate([path.second, path.second + 4]),
        jnp.concatenate([path.distance, path.distance]),
    )
    settings = Settings(geometry="wasserstein", shape=(3, 2), **TRAINING)
    keys = jax.random.split(jax.random.key(1), 2)
    alone = metric_embed.init(settings, 4, keys[:1])
    together = metric_embed.init(settings, 4, keys)
    for index in range(2):
        alone, _ = step(alone, index, path, settings)
        together, _ = step(together, index, two_paths, settings)
    np.testing.assert_allclose(together.x[:4], alone.x, atol=1e-4)


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
    pairs = graphs.all_pairs([square_with_tail, nx.path_graph(5)])
    first, second, distance = (np.asarray(array).reshape(2, 10) for array in pairs)
    np.testing.assert_array_equal(first[0], first[1] - 5)
    np.testing.assert_array_equal(distance[1], second[1] - first[1])
    np.testing.assert_array_equal(distance[0][first[0] == 0], [1, 2, 1, 2])
