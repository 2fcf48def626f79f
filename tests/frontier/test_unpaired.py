import jax.numpy as jnp
import numpy as np
import pytest

from common.linear import preprocess
from frontier.methods import published as unpaired
from isthmus.search import goat
from tests.isthmus.test_initialization import skewed_spaces

SETTINGS = {
    "mini_vec2vec": unpaired.MiniVec2Vec(num_clusters=12, neighbours=5, steps=20, step_rows=100),
    "rosetta": unpaired.Rosetta(num_clusters=12, num_restarts=40),
    "goat": goat.Settings(),
}

SOLVE = {"mini_vec2vec": unpaired.mini_vec2vec, "rosetta": unpaired.rosetta, "goat": goat.solve}
SEED = {"mini_vec2vec": (0,), "rosetta": (0,), "goat": ()}


def clustered_spaces(n=300):
    """A space of twelve clusters, a noisy rotated copy, and the copy's true rows."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(12, 10))[rng.integers(12, size=n)] + 0.3 * rng.normal(size=(n, 10))
    rotation = np.linalg.qr(rng.normal(size=(12, 12)))[0][:10]
    order = rng.permutation(n)
    y = (x @ rotation + 0.02 * rng.normal(size=(n, 12)))[order]
    return preprocess(jnp.asarray(x)), preprocess(jnp.asarray(y)), order


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "spaces", "num_pairs"),
    [
        ("mini_vec2vec", clustered_spaces(), 0),
        ("rosetta", clustered_spaces(), 0),
        ("rosetta", skewed_spaces(m=290), 3),
        ("goat", skewed_spaces(m=290), 4),
    ],
)
def test_a_rotated_copy_is_found(name, spaces, num_pairs):
    source, target, order = spaces
    pairs = order[:num_pairs], np.arange(num_pairs)
    matrix, again = (SOLVE[name](source, target, pairs, SETTINGS[name], *SEED[name]) for _ in "ab")
    np.testing.assert_array_equal(matrix, again)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(10), atol=1e-4)
    nearest = np.argmax((source @ matrix) @ target.T, axis=1)
    assert (nearest[order] == np.arange(len(order))).mean() > 0.95


def test_the_mean_of_the_nearest_rows():
    queries, keys = (np.random.default_rng(i).normal(size=(n, 4)) for i, n in ((0, 7), (1, 30)))
    means = unpaired._neighbour_means(*map(jnp.asarray, (queries, keys, keys)), 3)
    nearest = np.argsort(-queries @ keys.T, axis=1)[:, :3]
    np.testing.assert_allclose(means, keys[nearest].mean(axis=1), rtol=1e-5)


def test_a_step_of_goat_keeps_the_plan_doubly_stochastic_and_goes_uphill():
    x, y, order = (np.asarray(z) for z in skewed_spaces(n=40, m=40))
    x, count, plan = x[order], 2, jnp.full((38, 38), 1 / 38)

    def objective(plan):
        whole = np.eye(40)
        whole[count:, count:] = plan
        return np.sum((x @ x.T @ whole @ (y @ y.T)) * whole)

    before = objective(plan)
    for _ in range(3):
        plan, _ = goat._step(plan, jnp.asarray(x), jnp.asarray(y), count, goat.Settings())
        for axis in (0, 1):
            np.testing.assert_allclose(plan.sum(axis=axis), 1, atol=2e-2)
        now = objective(plan)
        assert now >= before - 1e-4
        before = now
    assert before > 1.5 * objective(np.full((38, 38), 1 / 38))
