"""Transport in training loops: warm starts, and training with plain Sinkhorn iterations instead."""

import jax
import jax.numpy as jnp
import numpy as np
import ot as pot
import pytest
from scipy.spatial.distance import cdist

from common.ot import batched
from wasserstein_embed import cloud, metric_embed, siamese
from wasserstein_embed.cloud import Clouds, Distance, WarmStart

PAIRS, POINTS = 3, 5
FIRST, SECOND = jnp.arange(PAIRS), PAIRS + jnp.arange(PAIRS)


def clouds(seed, k=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2 * PAIRS, POINTS, k)).astype(np.float32)


def distance(epsilon, iterations, value, implicit=True):
    solver = {"epsilon": epsilon, "iterations": iterations, "implicit_diff": implicit}
    return Distance(ground="euclidean", p=1.0, value=value, **solver)


def continued(points, options, calls=1):
    warm_start, objects = WarmStart.zeros(PAIRS, 2 * PAIRS, POINTS), jnp.arange(2 * PAIRS)
    for _ in range(calls):  # as in a training whose clouds do not move
        distances, warm_start = cloud.continued_distances(
            Clouds(points), FIRST, SECOND, options, warm_start, objects
        )
    return distances


@pytest.mark.parametrize("value", ["transport_cost", "sinkhorn_divergence"])
def test_short_continued_calls_end_where_long_ones_do(value):
    points = clouds(1)
    distances = continued(points, distance(0.05, 3, value), calls=100)
    converged = distance(0.05, 500, value)
    expected = cloud.pair_distances(Clouds(jnp.asarray(points)), FIRST, SECOND, converged)
    np.testing.assert_allclose(distances, expected, atol=1e-3)


@pytest.mark.parametrize("value", ["transport_cost", "entropic_cost"])
def test_gradients_at_the_optimum_equal_finite_differences(value):
    points = clouds(2)
    total = jax.jit(lambda x: continued(x, distance(0.3, 300, value)).sum())
    gradient = jax.grad(total)(jnp.asarray(points))
    for place in ((0, 0, 0), (1, 2, 1), (3, 1, 0), (5, 4, 0)):
        step = np.zeros_like(points)
        step[place] = 1e-2
        difference = (total(points + step) - total(points - step)) / 2e-2
        np.testing.assert_allclose(gradient[place], difference, atol=3e-3)


def test_distant_clouds_stay_finite_and_converge_to_unregularised_transport():
    points = clouds(4)
    points[PAIRS:] += 40.0
    options = distance(0.02, 3, "transport_cost")
    assert jnp.all(jnp.isfinite(continued(points, options)))
    distances = continued(points, options, calls=60)
    pairs = zip(points[:PAIRS], points[PAIRS:], strict=True)
    np.testing.assert_allclose(
        distances, [pot.emd2([], [], cdist(*pair)) for pair in pairs], rtol=1e-3
    )


def test_gradients_between_equal_clouds_are_finite():
    points = jnp.asarray(np.tile(clouds(5)[:PAIRS], (2, 1, 1)))
    options = distance(0.3, 20, "transport_cost")
    gradient = jax.grad(lambda x: continued(x, options).sum())(points)
    assert jnp.all(jnp.isfinite(gradient))


def plain_sinkhorn(options, log_domain, scaled, a, b):
    """As `batched._potentials`, without ott: potentials in units of epsilon, in the log domain."""
    del log_domain
    f, g = jnp.zeros_like(a), jnp.zeros_like(b)
    for _ in range(options.iterations):
        next_g = jnp.log(b) - jax.nn.logsumexp(f[..., :, None] - scaled, axis=-2)
        known = g if options.symmetric else next_g
        next_f = jnp.log(a) - jax.nn.logsumexp(known[..., None, :] - scaled, axis=-1)
        f, g = ((f + next_f) / 2, (g + next_g) / 2) if options.symmetric else (next_f, next_g)
    return f, g


def graph_curve():
    first, second = np.triu_indices(8, 1)
    data = metric_embed.Data(first, second, jnp.asarray(second - first, jnp.float32))
    training = {"init_range": (0.0, 1.0), "steps": 50, "learning_rate": 0.01, "debiased": True}
    solver = {"epsilon": (0.3, 0.1), "iterations": 3, "warm_start": True}
    settings = metric_embed.Settings(geometry="wasserstein", shape=(3, 2), **training, **solver)
    state = metric_embed.init(settings, 8, jax.random.split(jax.random.key(0), 1))
    step = jax.jit(lambda state, index: metric_embed.step(state, index, data, settings))
    for index in range(5):  # of ten updates each
        state, metrics = step(state, index)
        yield metrics["distortion"]


def image_curve():
    solver = {"epsilon": 1.0, "iterations": 20, "implicit_diff": False}
    options = Distance(ground="euclidean", p=2.0, value="transport_cost", **solver)
    shape = {"image_shape": (16, 16, 1), "num_points": 3, "dimensions": 2, "weights": "learned"}
    network = siamese.Network(**shape, pixel_mean=0.1, pixel_std=0.3, unit_norm=False)
    loss = {"margin": 0.6, "loss_power": 2.0, "temperature": None, "batch_size": 8}
    steps = {"steps": 50, "learning_rate": 1e-3, "decay_after": 0.8}
    training = siamese.Training(network=network, distance=options, **loss, **steps)
    images = np.random.default_rng(0).integers(0, 256, (12, 16, 16, 1)).astype(np.uint8)
    classes = siamese.group_by_class(np.arange(12) % 2)
    data = siamese.Data(jnp.asarray(images), classes, jax.random.key(1))
    state = siamese.init(training, jax.random.key(2))
    step = jax.jit(lambda state, index: siamese.step(state, index, data, training))
    for index in range(50):
        state, metrics = step(state, index)
        yield metrics["loss"]


@pytest.mark.slow
@pytest.mark.parametrize("curve", [graph_curve, image_curve])
def test_fifty_steps_of_training_are_those_with_plain_sinkhorn_iterations(curve, monkeypatch):
    losses = list(curve())
    monkeypatch.setattr(batched, "_potentials", plain_sinkhorn)
    jax.clear_caches()
    np.testing.assert_allclose(losses, list(curve()), atol=1e-4)
    jax.clear_caches()
