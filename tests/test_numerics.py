"""Results do not depend on the order of rows, and are accurate for small epsilon in float32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import one_hot
from scipy.special import logsumexp

from common import csls, linear, ot
from lpl import loss

N, M = 24, 17
RNG = np.random.default_rng(0)
X, Y = (RNG.normal(size=(size, 6)).astype(np.float32) for size in (N, M))
X, Y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (X, Y))
P, Q = RNG.permutation(N), RNG.permutation(M)
AT_P, AT_Q = np.argsort(P), np.argsort(Q)  # the new place of each row


def matched(x, y):
    matches = csls.matches(x, y, neighbours=4)
    return {"columns": matches.to_target, "rows": matches.to_source, "number": matches.objective}


def transported(x, y):
    matching = ot.match(x, y, 0.05, iterations=20, rows=True)
    along = {"along_rows": matching.u, "along_columns": matching.v}
    return {"columns": matching.to_y, "rows": matching.to_x, **along}


def solved(x, y):
    cost = ot.ground_cost(x, y, "euclidean", 2)
    options = {"epsilon": 0.1, "iterations": 20}
    return {value: ot.solve_batch(cost, value=value, **options).value for value in ot.VALUES}


def rebuilt(x, y):
    rows = jnp.arange(len(x))
    index = loss.neighbours(x, rows, 3)
    weights = loss.lle_weights(x, rows, index)
    dense = (one_hot(index, len(x)) * weights[..., None]).sum(1)  # [row, neighbour]
    return {"matrix": dense}


ORDERS = {
    "matches": matched,
    "CSLS": lambda x, y: {"columns": csls.top_k(x, y, 1, neighbours=4).index[:, 0]},
    "transport": transported,
    "Sinkhorn": solved,
    "assignment": lambda x, y: {"columns": ot.assign(x, y)},
    "LLE": rebuilt,
    "Procrustes": lambda x, y: {"number": linear.procrustes(x, x[:, ::-1] + 0.1 * x**2)},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ORDERS)
def test_permuted_rows_give_permuted_results(name):
    x, y, rows = jnp.asarray(X), jnp.asarray(Y), P
    if name == "assignment":  # needs as many rows on both sides
        x, rows = x[:M], Q[::-1]
    plain, permuted = ORDERS[name](x, y), ORDERS[name](x[rows], y[Q])
    for kind, expected in plain.items():
        expected = np.asarray(expected)
        if kind == "columns":  # a row of y for each row of x
            expected = AT_Q[expected[rows]]
        elif kind == "rows":
            expected = AT_P[expected[Q]]
        elif kind == "along_rows":
            expected = expected[rows]
        elif kind == "along_columns":
            expected = expected[Q]
        elif kind == "matrix":
            expected = expected[rows][:, rows]
        result = np.asarray(permuted[kind])
        if expected.dtype.kind in "iu":
            np.testing.assert_array_equal(result, expected)
        else:
            np.testing.assert_allclose(result, expected, atol=1e-5, rtol=1e-5)


def reference(x, y, epsilon, iterations):
    """<P, C> + epsilon KL(P | a b') after log-domain Sinkhorn iterations in float64."""
    x, y = (np.asarray(z, np.float64) for z in (x, y))
    scaled = ((x[:, None] - y) ** 2).sum(-1) / epsilon
    a, b = (np.full(len(z), 1 / len(z)) for z in (x, y))
    f = np.zeros(len(x))
    for _ in range(iterations):
        g = np.log(b) - logsumexp(f[:, None] - scaled, axis=0)
        f = np.log(a) - logsumexp(g - scaled, axis=1)
    mass = np.exp(f[:, None] + g - scaled).sum()
    return epsilon * (a @ (f - np.log(a)) + b @ (g - np.log(b)) + 1 - mass)


@pytest.fixture(scope="module")
def differentiated():
    """Value and gradient of 40 iterations."""

    def value(x, y, epsilon):
        cost = ot.ground_cost(x, y, "euclidean", 2)
        options = {"epsilon": epsilon, "iterations": 40, "value": "entropic_cost"}
        return ot.solve_batch(cost, **options).value

    return jax.jit(jax.value_and_grad(value))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("duplicates", [False, True])
def test_small_epsilon_and_duplicated_points_in_float32(differentiated, epsilon, duplicates):
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=(8, 2)).astype(np.float32) for _ in range(2))
    if duplicates:
        x[4:], y[2:4], y[5] = x[:4], y[:2], x[0]
    value, gradient = differentiated(jnp.asarray(x), jnp.asarray(y), epsilon)
    with jax.enable_x64(True):
        exact, slope = differentiated(*(jnp.asarray(z, jnp.float64) for z in (x, y)), epsilon)
    np.testing.assert_allclose(value, exact, rtol=1e-4)
    off = max(1e-4, 5e-8 / epsilon)  # the rounding errors of potentials grow with cost / epsilon
    np.testing.assert_allclose(gradient, slope, atol=off * np.abs(slope).max())
    np.testing.assert_allclose(value, reference(x, y, epsilon, 40), rtol=1e-4)
