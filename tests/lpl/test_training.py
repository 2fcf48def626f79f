import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.errors import UserError
from lpl import loss, maps, training

DIMENSION = 8


def settings(apply, **values):
    base = {
        "apply": apply,
        "learning_rate": 0.05,
        "momentum": 0.9,
        "batch": 20,
        "updates": 400,
        "updates_per_step": 100,
        "beta": 1.0,
        "orthogonality": 0.0,
    }
    return training.Settings(**(base | values))


@pytest.fixture(scope="module")
def data():
    """A known rotation of 60 units, of which 40 are training pairs; the rest is padding."""
    rng = np.random.default_rng(0)
    space = jnp.asarray(rng.standard_normal((60, DIMENSION)), jnp.float32)
    rotation = jnp.asarray(
        np.linalg.qr(rng.standard_normal((DIMENSION, DIMENSION)))[0], jnp.float32
    )
    rows = jnp.arange(60)
    index = loss.neighbours(space, rows, 4)
    weights = loss.lle_weights(space, rows, index)
    targets = (space @ rotation).at[40:].set(jnp.nan)  # a draw from the padding would show
    return rotation, training.Data(
        space, targets, space[index], weights, jnp.asarray(40), jax.random.key(0)
    )


def descend(data, parameters, chosen):
    state, run = training.init(parameters, chosen), jax.jit(training.step, static_argnums=3)
    for index in range(chosen.updates // chosen.updates_per_step):
        state, terms = run(state, index, data, chosen)
    return state.parameters, terms


def test_mse_alone_finds_the_rotation(data):
    rotation, data = data
    start, apply = maps.init("linear", DIMENSION, DIMENSION, 0, jax.random.key(1))
    found, terms = descend(data, start, settings(apply, beta=0.0))
    np.testing.assert_allclose(found, rotation, atol=0.01)
    assert set(terms) == {"mse"} and terms["mse"] < 1e-3


def test_with_lpl_descent_ends_at_the_least_squares_of_units_and_reconstructions(data):
    _, data = data
    start, apply = maps.init("linear", DIMENSION, DIMENSION, 0, jax.random.key(1))
    chosen = settings(apply, beta=2.0, batch=400, learning_rate=0.1)
    found, terms = descend(data, start, chosen)
    rebuilt = np.asarray(loss.combine(data.neighbours, data.weights))
    x = np.concatenate([np.asarray(data.source)[:40], np.sqrt(2) * rebuilt[:40]])
    z = np.asarray(data.targets)[:40]
    expected = np.linalg.lstsq(x, np.concatenate([z, np.sqrt(2) * z]), rcond=None)[0]
    np.testing.assert_allclose(found, expected, atol=0.05)
    assert set(terms) == {"mse", "lpl"}


def test_orthogonality_draws_the_map_to_an_isometry(data):
    _, data = data
    start = jnp.zeros((DIMENSION, 3)).at[:3].set(0.3 * jnp.eye(3))
    narrow = data._replace(targets=data.targets[:, :3])
    chosen = settings(maps.linear, beta=0.0, orthogonality=10.0, learning_rate=0.005)
    found, _ = descend(narrow, start, chosen)
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=0.05)


def test_a_perceptron_learns_too_and_maps_each_neighbour(data):
    _, data = data
    start, apply = maps.init("mlp", DIMENSION, DIMENSION, 32, jax.random.key(1))
    found, terms = descend(data, start, settings(apply, beta=0.1))
    assert terms["mse"] < 0.3 * float((data.targets[:40] ** 2).sum(axis=1).mean())
    _, other = maps.init("mlp", DIMENSION, DIMENSION, 32, jax.random.key(2))
    assert apply == other and hash(apply) == hash(other)  # one compilation
    rows = jnp.arange(40)
    total, terms = training.objective(found, data, rows, settings(apply, beta=0.1))
    near = apply(found, data.neighbours[rows])
    expected = loss.lpl(near, data.weights[rows], data.targets[rows]).mean()
    np.testing.assert_allclose(terms["lpl"], expected, rtol=1e-5)
    np.testing.assert_allclose(total, terms["mse"] + 0.1 * expected, rtol=1e-5)


def test_an_unknown_map():
    with pytest.raises(UserError, match="no map 'cubic': choose one of linear, mlp"):
        maps.init("cubic", 2, 2, 2, jax.random.key(0))
