import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.run.settings import settings
from configs.lpl.nli import get_config
from lpl import loss, nli

DELTA = (100.0, -5.0, 1.0)
D, K, TEXTS, COUNT = 6, 3, 60, 30
step = jax.jit(nli.step, static_argnums=3)


@pytest.fixture(scope="module")
def network():
    """Initial parameters of two runs, and the settings of their training."""
    keys = jax.random.split(jax.random.key(0), 2)
    parameters, apply, classify = nli.init("mlp", D, 5, 7, keys)
    functions = {"apply": apply, "classify": classify}
    values = {"gamma": 0.1, "learning_rate": 0.01, "batch": 16, "updates": 400}
    floor = {"negative_loss_floor": -2.0}
    return parameters, settings(nli.Settings, get_config(), **functions, **values, **floor)


@pytest.fixture(scope="module")
def data():
    """Two runs of 30 pairs and padding; a premise entails the text with the opposite vector."""
    rng = np.random.default_rng(0)
    texts = rng.standard_normal((TEXTS, D))
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    premises = rng.integers(0, TEXTS, (2, 40))
    labels = rng.integers(0, 3, (2, 40))
    hypotheses = np.where(labels == 0, premises + TEXTS, rng.integers(0, TEXTS, (2, 40)))
    hypotheses[:, COUNT:] = 2 * TEXTS  # its vector is NaN, and so is the loss if padding is drawn
    vectors = np.concatenate([texts, -texts, np.full((1, D), np.nan)]).astype(np.float32)
    near, weights = nli.premise_neighbours(jnp.asarray(vectors), jnp.arange(0, TEXTS, 1), K, 1e-3)
    return nli.Data(
        vectors=jnp.asarray(vectors),
        neighbours=near,
        weights=weights,
        inputs=jnp.ones(2),
        num_pairs=jnp.array(COUNT),
        pairs=nli.EncodedPairs(*map(jnp.asarray, (premises, hypotheses, labels))),
        key=jax.random.split(jax.random.key(1), 2),
    )


def test_losses_are_weighted_by_label_and_negative_ones_have_a_floor():
    term = jnp.array([0.5, 0.5, 0.3, 0.5])
    delta = jnp.array([100.0, 1.0, -5.0, -5.0])
    weighed = partial(nli.weigh, delta=delta, floor=-2.0)
    np.testing.assert_allclose(weighed(term), [50.0, 0.5, -1.5, -2.0])
    gradient = jax.grad(lambda x: weighed(x).sum())(term)
    np.testing.assert_allclose(gradient, [100.0, 1.0, -5.0, 0.0])  # zero at the floor


@pytest.mark.slow
def test_the_objective_is_equation_8(network, data):
    parameters, chosen = jax.tree.map(lambda x: x[1], network[0]), network[1]
    pairs, rows = jax.tree.map(lambda x: x[1], data.pairs), jnp.array([3, 0, 7, 7, 21])
    total, terms = chosen.objective(parameters, data._replace(pairs=pairs), rows)
    entropy, alignment, mse, lpl, predicted = [], [], [], [], []
    f = partial(chosen.apply, parameters["map"])
    for row in rows:
        index, label = pairs.premises[row], int(pairs.labels[row])
        p, h = data.vectors[index], data.vectors[pairs.hypotheses[row]]
        logits, _ = chosen.classify(parameters["classifier"], jnp.concatenate([f(p), p, h]))
        predicted.append(int(logits.argmax()))
        entropy.append(-jax.nn.log_softmax(logits)[label])
        rebuilt = sum(
            w * f(data.vectors[j])
            for w, j in zip(data.weights[index], data.neighbours[index], strict=True)
        )
        mse.append(jnp.sum((f(p) - h) ** 2))
        lpl.append(jnp.sum((h - rebuilt) ** 2))
        floor = -2.0 if label == 1 else -jnp.inf
        alignment.append(sum(max(DELTA[label] * x, floor) for x in (mse[-1], lpl[-1])))
    expected = np.mean(entropy) + 0.1 * np.mean(alignment)
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    for name, value in (("cross_entropy", entropy), ("mse", mse), ("lpl", lpl)):
        np.testing.assert_allclose(terms[name], np.mean(value), rtol=1e-5)
    asked = jax.tree.map(lambda x: x[rows], pairs)
    labels, hidden = nli.predict(network[0], data, asked, chosen)
    assert labels[1].tolist() == predicted and hidden.shape == (2, 5, 7)


def test_neighbours_of_premises_are_premises(data):
    premises = jnp.array([5, 7, 11, 19, 40, 41, 59])
    near, weights = nli.premise_neighbours(data.vectors, premises, K, 1e-3)
    assert near.shape == weights.shape == (len(data.vectors), K)
    space = data.vectors[premises]
    index = loss.neighbours(space, jnp.arange(7), K)
    np.testing.assert_array_equal(near[premises], premises[index])
    expected = loss.lle_weights(space, jnp.arange(7), index)
    np.testing.assert_allclose(weights[premises], expected, rtol=1e-6)
    assert not weights[jnp.array([0, 6, 58, 100])].any()


def test_all_methods_have_the_same_initialisation_and_batches(network, data):
    parameters, chosen = network
    chosen = dataclasses.replace(chosen, gamma=0.0)
    state = nli.init_state(parameters, chosen)
    states = {}
    for name, method in nli.METHODS.items():
        states[name], terms = step(state, 0, nli.restrict(data, method, COUNT), chosen)
        assert all(jnp.isfinite(value) for value in terms.values())  # no padding was drawn
    # Without the weight of the losses, methods with the same inputs of the classifier are equal.
    close = partial(np.testing.assert_allclose, atol=1e-6)
    jax.tree.map(close, states["map_only"].parameters, states["mse_lpl"].parameters)
    # The map of the baseline, which the classifier does not read, is not trained.
    baseline = states["baseline"].parameters["map"]
    jax.tree.map(np.testing.assert_array_equal, baseline, parameters["map"])


def test_neighbour_agreement_counts_the_nearest_representations():
    hidden = jnp.array([[0.0], [1.0], [3.0], [10.0]])
    labels, predicted = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0])
    apart = nli.EncodedPairs(np.arange(4), np.arange(4, 8), labels)
    near = nli.nearest_pairs(hidden, apart, 1)
    assert near.ravel().tolist() == [1, 0, 1, 2]
    assert nli.neighbour_agreement(near, predicted, labels) == 0.75
    # The first two have a premise in common, the second and the third a hypothesis.
    shared = nli.EncodedPairs(np.array([0, 0, 2, 3]), np.array([4, 5, 5, 7]), labels)
    assert nli.nearest_pairs(hidden, shared, 1).ravel().tolist() == [2, 3, 0, 2]
