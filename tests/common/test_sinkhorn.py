"""Both ways of iterating against each other; values and gradients are tested with clouds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common import sinkhorn


@pytest.mark.parametrize("weighted", [False, True])
def test_products_give_what_logarithms_give(weighted, monkeypatch):
    rng = np.random.default_rng(0)
    x, y = (jnp.asarray(rng.uniform(size=(5, n, 2)), jnp.float32) for n in (4, 6))
    a, b = (jnp.asarray(rng.dirichlet(np.ones(n), 5), jnp.float32) for n in (4, 6))
    a, b = (a, b) if weighted else (None, None)

    def values(x):
        cost = sinkhorn.ground_cost(x, y, "euclidean", 2)
        solved = sinkhorn.solve(cost, a, b, epsilon=0.1, iterations=7)
        own = sinkhorn.ground_cost(x, x, "euclidean", 2)
        own = sinkhorn.solve_own(own, a, epsilon=0.1, iterations=7)
        return solved.cost.sum() + solved.value.sum() - own.sum(), (solved, own)

    found = []
    for largest in (sinkhorn.LARGEST, -1.0):  # -1: none are moderate
        monkeypatch.setattr(sinkhorn, "LARGEST", largest)
        jax.clear_caches()
        found.append(jax.jit(jax.value_and_grad(values, has_aux=True))(x))
    products, logarithms = map(jax.tree.leaves, found)
    for one, other in zip(products, logarithms, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def test_costs_that_the_kernel_cannot_hold():
    """A thousand times epsilon: exp underflows, logarithms do not."""
    cost = jnp.array([[0.0, 1.0], [1.0, 0.0]])
    solved = sinkhorn.solve(cost, None, jnp.array([1.0, 0.0]), epsilon=1e-3, iterations=50)
    np.testing.assert_allclose(solved.cost, 0.5, rtol=1e-3)
