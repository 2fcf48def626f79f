from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lpl import loss, nli

DELTA = (100.0, -5.0, 1.0)
D, K, TEXTS, COUNT = 6, 3, 60, 30
step = jax.jit(nli.step, static_argnums=3)


@pytest.fixture(scope="module")
def start():
    return nli.init("mlp", D, 5, 7, jax.random.split(jax.random.key(0), 2))


@pytest.fixture(scope="module")
def data():
    """Two runs of 30 pairs and padding; a premise entails the text that is its opposite."""
    rng = np.random.default_rng(0)
    texts = rng.standard_normal((TEXTS, D))
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    premises = rng.integers(0, TEXTS, (2, 40))
    labels = rng.integers(0, 3, (2, 40))
    hypotheses = np.where(labels == 0, premises + TEXTS, rng.integers(0, TEXTS, (2, 40)))
    hypotheses[:, COUNT:] = 2 * TEXTS  # a draw from the padding would show
    table = np.concatenate([texts, -texts, np.full((1, D), np.nan)]).astype(np.float32)
    near, weights = nli.neighbourhoods(jnp.asarray(table), jnp.arange(0, TEXTS, 1), K, 1e-3)
    return nli.Data(
        jnp.asarray(table),
        near,
        weights,
        jnp.ones(2),
        jnp.array(0.1),
        jnp.array(0.01),
        jnp.array(COUNT),
        *map(jnp.asarray, (premises, hypotheses, labels)),
        jax.random.split(jax.random.key(1), 2),
    )


def settings(start):
    return nli.Settings(start[1], start[2], DELTA, -2.0, batch=16, updates=400, updates_per_step=20)


def run_of(data, run):
    """One run's data, as `objective` sees them."""
    return data._replace(**{name: getattr(data, name)[run] for name in data._fields[7:]})


def test_alignment_is_weighed_by_label_and_divergence_held_at_the_floor():
    term = jnp.array([0.5, 0.5, 0.3, 0.5])
    delta = jnp.array([100.0, 1.0, -5.0, -5.0])
    weighed = partial(nli.weigh, delta=delta, floor=-2.0)
    np.testing.assert_allclose(weighed(term), [50.0, 0.5, -1.5, -2.0])
    slope = jax.grad(lambda x: weighed(x).sum())(term)
    np.testing.assert_allclose(slope, [100.0, 1.0, -5.0, 0.0])  # on the floor nothing pulls


def test_objective_is_equation_8(start, data):
    parameters = jax.tree.map(lambda x: x[1], start[0].parameters)
    data, rows = run_of(data, 1), jnp.array([3, 0, 7, 7, 21])
    total, terms = nli.objective(parameters, data, rows, settings(start))
    entropy, alignment, mse, lpl = [], [], [], []
    f = partial(start[1], parameters["map"])
    for row in rows:
        p, h = data.table[data.premises[row]], data.table[data.hypotheses[row]]
        label = int(data.labels[row])
        logits, _ = start[2](parameters["classifier"], jnp.concatenate([f(p), p, h]))
        entropy.append(-jax.nn.log_softmax(logits)[label])
        index = data.premises[row]
        rebuilt = sum(
            w * f(data.table[j])
            for w, j in zip(data.weights[index], data.neighbours[index], strict=True)
        )
        mse.append(jnp.sum((f(p) - h) ** 2))
        lpl.append(jnp.sum((h - rebuilt) ** 2))
        held = [max(DELTA[label] * x, -2.0 if label == 1 else -jnp.inf) for x in (mse[-1], lpl[-1])]
        alignment.append(sum(held))
    expected = np.mean(entropy) + 0.1 * np.mean(alignment)
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    for name, value in (("cross_entropy", entropy), ("mse", mse), ("lpl", lpl)):
        np.testing.assert_allclose(terms[name], np.mean(value), rtol=1e-5)


def test_neighbours_are_premises_alone(data):
    premises = jnp.array([5, 7, 11, 19, 40, 41, 59])
    near, weights = nli.neighbourhoods(data.table, premises, K, 1e-3)
    assert near.shape == weights.shape == (len(data.table), K)
    space = data.table[premises]
    index = loss.neighbours(space, jnp.arange(7), K)
    np.testing.assert_array_equal(near[premises], premises[index])
    expected = loss.lle_weights(space, jnp.arange(7), index)
    np.testing.assert_allclose(weights[premises], expected, rtol=1e-6)
    assert not weights[jnp.array([0, 6, 58, 100])].any()


def test_methods_share_start_and_batches(start, data):
    chosen = settings(start)
    narrow = data._replace(neighbours=data.neighbours[:, :0], weights=data.weights[:, :0])
    still, _ = step(start[0], 0, narrow._replace(gamma=jnp.array(0.0)), chosen)
    full, terms = step(start[0], 0, data._replace(gamma=jnp.array(0.0)), chosen)
    for first, second in zip(*map(jax.tree.leaves, (still, full)), strict=True):
        np.testing.assert_allclose(first, second, atol=1e-6)
    assert all(jnp.isfinite(value) for value in terms.values())  # no padding was drawn
    without = narrow._replace(seen=jnp.array([0.0, 1.0]), gamma=jnp.array(0.0))
    base, _ = step(start[0], 0, without, chosen)
    for first, second in zip(
        *(jax.tree.leaves(state.parameters["map"]) for state in (base, start[0])), strict=True
    ):
        np.testing.assert_array_equal(first, second)  # the baseline has no f to train


def test_training_aligns_and_classifies(start, data):
    state = start[0]
    for index in range(20):
        state, _ = step(state, index, data, settings(start))
    pairs = [getattr(data, name)[:, :COUNT] for name in ("premises", "hypotheses", "labels")]
    labels, hidden = nli.predict(
        state.parameters, data.table, data.seen, pairs[0][0], pairs[1][0], settings(start)
    )
    assert labels.shape == (2, COUNT) and hidden.shape == (2, COUNT, 7)
    assert np.mean(labels[0] == pairs[2][0]) > 0.8
    image = jax.vmap(start[1])(state.parameters["map"], data.table[pairs[0]])
    apart = np.sum((image - data.table[pairs[1]]) ** 2, axis=-1)
    assert apart[pairs[2] == 0].mean() < 0.3 < 1 < apart[pairs[2] == 1].mean()
