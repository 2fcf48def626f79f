"""Distances of vectors against independent formulas, and embeddings known to be exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import entropy

from wasserstein_embed import metric_embed
from wasserstein_embed.fixed_point import Potentials
from wasserstein_embed.metric_embed import Carried, Data, Settings

RNG = np.random.default_rng(0)


def test_hyperbolic_distance_is_arcosh_of_the_conformal_ratio():
    x, y = (0.5 * RNG.normal(size=(20, 3)) / 3**0.5 for _ in range(2))
    squares = ((x - y) ** 2).sum(1)
    ratio = 1 + 2 * squares / ((1 - (x**2).sum(1)) * (1 - (y**2).sum(1)))
    found = metric_embed.hyperbolic(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(found, np.arccosh(ratio), rtol=1e-4)
    radius = 0.9  # from the centre: 2 artanh r
    origin = jnp.zeros((1, 2))
    found = metric_embed.hyperbolic(origin, jnp.array([[radius, 0.0]]))
    np.testing.assert_allclose(found, 2 * np.arctanh(radius), rtol=1e-5)
    near = metric_embed.hyperbolic(origin, origin + 1e-6)  # arcosh in float32 says 0
    np.testing.assert_allclose(near, 2e-6 * 2**0.5, rtol=1e-4)


def test_kl_is_scipys_entropy_and_is_not_symmetric():
    x, y = RNG.normal(size=(2, 10, 4))
    found = metric_embed.kl(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(found, entropy(softmax(x, 1), softmax(y, 1), axis=1), rtol=1e-4)
    assert not np.allclose(found, metric_embed.kl(jnp.asarray(y), jnp.asarray(x)), rtol=1e-2)


def path_graph(nodes):
    first, second = np.triu_indices(nodes, 1)
    target = jnp.asarray(second - first, jnp.float32)
    return Data(jnp.asarray(first), jnp.asarray(second), target)


def test_a_path_laid_on_a_line_has_no_distortion():
    data, nodes = path_graph(6), 6
    line = jnp.arange(nodes, dtype=jnp.float32)
    found = metric_embed.euclidean(line[data.first, None], line[data.second, None])
    assert metric_embed.distortion(found, data.target) < 1e-6
    # Clouds whose points all lie in one place: the divergence is the distance of the places.
    x = jnp.repeat(jnp.stack([line, jnp.zeros(nodes)], axis=1)[:, None], 4, axis=1)
    settings = Settings("wasserstein", (4, 2), (0, 1), 1, 0.1, debiased=True, iterations=20)
    carried = Carried(Potentials.zeros(len(data.target), 4), jnp.zeros((nodes, 4)))
    found, _ = metric_embed.distances(x, data.first, data.second, carried, 0.1, settings)
    assert metric_embed.distortion(found, data.target) < 1e-4


def test_distortion_is_a_mean_of_relative_errors():
    found = metric_embed.distortion(jnp.array([1.5, 2.0, 2.0]), jnp.array([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(found, (0.5 + 0 + 0.5) / 3)


@pytest.mark.parametrize(
    ("geometry", "shape", "most"),
    [("euclidean", (2,), 0.02), ("hyperbolic", (2,), 0.1), ("wasserstein", (2, 2), 0.03)],
)
def test_training_finds_a_path(geometry, shape, most):
    data, nodes = path_graph(5), 5
    settings = Settings(
        geometry,
        shape,
        (-0.5, 0.5),
        400,
        0.05,
        schedule="cosine",
        epsilon=(0.3, 0.05),
        debiased=True,
        iterations=3,
        carry=True,
    )
    state = metric_embed.init(settings, jax.random.split(jax.random.key(0), 1), nodes)
    state, metrics = jax.jit(
        lambda state: jax.lax.scan(
            lambda state, index: metric_embed.step(state, index, data, settings),
            state,
            jnp.arange(settings.steps // metric_embed.UPDATES),
        )
    )(state)
    assert metrics["distortion"][-1] < most
    if geometry == "hyperbolic":
        assert jnp.linalg.norm(state.x, axis=1).max() < 1


def test_graphs_trained_together_do_not_touch():
    one = path_graph(4)
    both = Data(
        jnp.concatenate([one.first, one.first + 4]),
        jnp.concatenate([one.second, one.second + 4]),
        jnp.concatenate([one.target, one.target]),
    )
    settings = Settings("wasserstein", (3, 2), (0.0, 1.0), 3, 0.1)
    keys = jax.random.split(jax.random.key(1), 2)
    alone = metric_embed.init(settings, keys[:1], 4)
    together = metric_embed.init(settings, keys, 4)
    step = jax.jit(metric_embed.step, static_argnames="settings")
    for index in range(2):
        alone, _ = step(alone, index, one, settings)
        together, _ = step(together, index, both, settings)
    np.testing.assert_allclose(together.x[:4], alone.x, atol=1e-4)
