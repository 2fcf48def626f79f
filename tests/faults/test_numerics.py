"""What has to hold of the mathematics whatever the order of rows and however small epsilon."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import one_hot

from anchor_opt import bootstrap
from common import alignment, ot, retrieval, sinkhorn
from embed_match import compare
from lpl import loss

N, M = 24, 17
RNG = np.random.default_rng(0)
X, Y = (RNG.normal(size=(size, 6)).astype(np.float32) for size in (N, M))
X, Y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (X, Y))
P, Q = RNG.permutation(N), RNG.permutation(M)
AT_P, AT_Q = np.argsort(P), np.argsort(Q)  # where a row has gone


def matched(x, y):
    found = bootstrap.match(x, y, neighbours=4)
    return {"columns": found.to_moving, "rows": found.to_fixed, "number": found.objective}


def transported(x, y):
    found = ot.match(x, y, 0.05, iterations=20, rows=True)
    return {"columns": found.to_y, "rows": found.to_x, "along_rows": found.u, "along_columns": found.v}


def solved(x, y):
    cost = sinkhorn.ground_cost(x, y, "euclidean", 2)
    found = sinkhorn.solve(cost, None, None, epsilon=0.1, iterations=20)
    return {"number": found.value, "number too": found.cost}


def rebuilt(x, y):
    rows = jnp.arange(len(x))
    index = loss.neighbours(x, rows, 3)
    weights = loss.lle_weights(x, rows, index)
    spread = (one_hot(index, len(x)) * weights[..., None]).sum(1)  # [row, neighbour]
    return {"by_rows_twice": spread}


ORDERS = {
    "bootstrap": matched,
    "CSLS": lambda x, y: {"columns": retrieval.csls_top_k(x, y, 1, neighbours=4)[1][:, 0]},
    "transport": transported,
    "Sinkhorn": solved,
    "assignment": lambda x, y: {"columns": compare.assignment(x[:M], y)},
    "LLE": rebuilt,
    "Procrustes": lambda x, y: {"number": alignment.procrustes(x, x[:, ::-1] + 0.1 * x**2)},
}


@pytest.mark.parametrize("name", ORDERS)
def test_permuted_rows_give_permuted_results(name):
    rows, at_rows = (P, AT_P) if name != "assignment" else (RNG.permutation(M), None)
    plain = ORDERS[name](jnp.asarray(X), jnp.asarray(Y))
    turned = ORDERS[name](jnp.asarray(X)[rows], jnp.asarray(Y)[Q])
    for kind, expected in plain.items():
        expected = np.asarray(expected)
        if kind == "columns":  # of each row of x a row of y
            expected = AT_Q[expected[rows]]
        elif kind == "rows":
            expected = at_rows[expected[Q]]
        elif kind == "along_rows":
            expected = expected[rows]
        elif kind == "along_columns":
            expected = expected[Q]
        elif kind == "by_rows_twice":
            expected = expected[rows][:, rows]
        found = np.asarray(turned[kind])
        if expected.dtype.kind in "iu":
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5)
