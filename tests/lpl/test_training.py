import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.run.settings import settings as typed
from configs.lpl.word_alignment import get_config
from lpl import loss, methods, training

DIMENSION = 8


def settings(apply, **values):
    base = {"learning_rate": 0.05, "batch": 20, "updates": 400, "orthogonality": 0.0}
    config = get_config().lpa_mse
    return typed(methods.GradientDescent, config, apply=apply, **(base | values))


@pytest.fixture(scope="module")
def data():
    """A known rotation of 60 vectors, of which 40 are training pairs; the others are padding."""
    rng = np.random.default_rng(0)
    space = jnp.asarray(rng.standard_normal((60, DIMENSION)), jnp.float32)
    rotation = np.linalg.qr(rng.standard_normal((DIMENSION, DIMENSION)))[0].astype(np.float32)
    rows = jnp.arange(60)
    index = loss.neighbours(space, rows, 4)
    return methods.Data(
        source=space,
        targets=(space @ rotation).at[40:].set(jnp.nan),  # the loss is NaN if padding is drawn
        neighbours=space[index],
        weights=loss.lle_weights(space, rows, index),
        num_pairs=jnp.asarray(40),
        key=jax.random.key(0),
    )


def descend(data, parameters, chosen):
    state, run = training.init_state(parameters, chosen), jax.jit(training.step, static_argnums=3)
    for index in range(training.STEPS):
        state, terms = run(state, index, data, chosen)
    return state.parameters, terms


def test_lpl_converges_to_least_squares_on_vectors_and_their_reconstructions(data):
    start, apply = training.init_map("linear", DIMENSION, DIMENSION, 0, jax.random.key(1))
    chosen = settings(apply, beta=2.0, batch=400, learning_rate=0.1)
    trained, terms = descend(data, start, chosen)
    rebuilt = np.asarray(loss.combine(data.neighbours, data.weights))
    x = np.concatenate([np.asarray(data.source)[:40], np.sqrt(2) * rebuilt[:40]])
    z = np.asarray(data.targets)[:40]
    expected = np.linalg.lstsq(x, np.concatenate([z, np.sqrt(2) * z]), rcond=None)[0]
    np.testing.assert_allclose(trained, expected, atol=0.05)
    assert set(terms) == {"mse", "lpl"}


def test_the_orthogonality_loss_makes_the_map_an_isometry(data):
    start = jnp.zeros((DIMENSION, 3)).at[:3].set(0.3 * jnp.eye(3))
    narrow = data._replace(targets=data.targets[:, :3])
    chosen = settings(training.linear, beta=0.0, orthogonality=10.0, learning_rate=0.005)
    trained, _ = descend(narrow, start, chosen)
    np.testing.assert_allclose(trained.T @ trained, np.eye(3), atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name, layers", [("mlp", 2), ("three_layers", 3)])
def test_a_perceptron_is_trained_with_lpl_of_its_mapped_neighbours(data, name, layers):
    start, apply = training.init_map(name, DIMENSION, DIMENSION, 32, jax.random.key(1))
    assert len(jax.tree.leaves(start)) == 2 * layers  # each has weights and a bias
    chosen = settings(apply, beta=0.1)
    trained, terms = descend(data, start, chosen)
    assert terms["mse"] < 0.3 * float((data.targets[:40] ** 2).sum(axis=1).mean())
    rows = jnp.arange(40)
    total, terms = chosen.objective(trained, data, rows)
    near = apply(trained, data.neighbours[rows])
    expected = loss.lpl(near, data.weights[rows], data.targets[rows]).mean()
    np.testing.assert_allclose(terms["lpl"], expected, rtol=1e-5)
    np.testing.assert_allclose(total, terms["mse"] + 0.1 * expected, rtol=1e-5)
