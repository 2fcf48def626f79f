"""Functions that are split between devices, on several devices and on one; run as a script.

python -m tests.sharded 8

The script needs as many devices as its argument says, which test_parallel.py simulates. Sizes are
drawn around the number of devices, the number of rows in a block, and their multiples.
"""

import sys

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import common
from common import csls, metrics, ot, parallel, retrieval
from common.linear import unit
from common.ot import streamed
from lpl import loss
from wasserstein_embed import cloud

BLOCK, DIM = 8, 6
assert common


def sizes(devices):
    """Numbers of rows at which blocks, parts and devices begin or end."""
    multiples = [devices, BLOCK, devices * BLOCK, 2 * devices * BLOCK]
    return st.builds(
        lambda base, more: max(4, base + more), st.sampled_from(multiples), st.integers(-1, 3)
    )


def searches(x, y):
    """All searches in one program, each of which is split between the devices."""
    results = {
        "top_k": retrieval.top_k(x, y, 3),
        "csls_top_k": csls.top_k(x, y, 3),
        "inverted_softmax_top_k": retrieval.inverted_softmax_top_k(x, y, 3),
        "hubness": csls.hubness(x, y, 3),
        "dictionary": csls.dictionary(x, y, neighbours=3),
        "matches": csls.matches(x, y, neighbours=3),
    }
    index = loss.neighbours(x, jnp.arange(len(x)), 3)
    results["lle_weights"] = loss.lle_weights(x, jnp.arange(len(x)), index)
    clouds = [cloud.Clouds(z.reshape(-1, 3, 2)) for z in (x, y)]
    solver = {"epsilon": 1.0, "iterations": 3, "implicit_diff": False}
    distance = cloud.Distance(ground="euclidean", p=2.0, value="sinkhorn_divergence", **solver)
    results["clouds"] = cloud.nearest_neighbours(*clouds, distance, 2)
    return results


def transports(x, y):
    """A matching, means under its plan, and their gradient; of distinct rows.

    Rounding decides which of two equal rows is matched, and the sums of devices round differently.
    """
    x, y = x[:-1], y[:-1]
    matching = ot.match(x, y, 0.1, iterations=2, rows=True)

    def total(values):
        return (ot.barycentric(y, x, matching.u, values, 0.1) ** 2).sum()

    return matching, jax.value_and_grad(total)(x)


def batches(x, y):
    """Means, sums and gathered rows over the parts of a batch, beside a search.

    The parts may be fewer than the devices, as those of the locality preserving loss.
    """

    def value(matrix, rows):
        others = parallel.all_parts(rows)
        return ((rows @ matrix @ others.T) ** 2).mean(), {"mean": rows.mean()}

    def collected(rows, scale):
        return parallel.sum_of_parts(rows.sum(0)), scale * rows

    return (
        parallel.value_and_gradient(value, jnp.eye(DIM), x),
        parallel.on_parts(collected, x, 2.0),
        parallel.mean_over_devices(lambda rows: rows.mean(0), y),
        retrieval.top_k(x, y, 3),
    )


def similarities(x, y):
    """The measures of correspondence, whose sums are over all rows."""
    n = min(len(x), len(y))
    return metrics.correspondence({"a": x[:n], "b": y[:n]})


def compare(devices, n, m):
    """All functions of n and m rows on all devices and on one."""
    rng = np.random.default_rng(n * 1_000 + m)
    x, y = (unit(rng.normal(size=(size, DIM)).astype(np.float32)) for size in (n, m))
    x[-1], y[-1] = x[0], y[1]  # ties across devices
    for function in (searches, transports, batches, similarities):
        results = []
        for used in (devices[:1], devices):
            jax.clear_caches()  # a traced program does not know of other devices
            parallel.devices = lambda used=used: used
            program = function if function is similarities else jax.jit(function)
            results.append(jax.tree_util.tree_leaves_with_path(jax.device_get(program(x, y))))
        for (path, one), (_, many) in zip(*results, strict=True):
            name = f"{function.__name__}{jax.tree_util.keystr(path)} of {n} and {m} rows"
            if np.issubdtype(np.asarray(one).dtype, np.floating):
                np.testing.assert_allclose(many, one, rtol=2e-5, atol=2e-5, err_msg=name)
            else:
                np.testing.assert_array_equal(many, one, err_msg=name)


def main(count):
    """Draws sizes and compares."""
    devices = jax.devices()
    assert len(devices) == count
    for module in (streamed, retrieval, csls, loss, metrics):
        module.block_rows = lambda columns, parts=1: BLOCK
    retrieval.MIN_TILE_KEYS, retrieval.TILE_QUERIES = 20, BLOCK
    options = {"max_examples": 2, "deadline": None, "derandomize": True, "database": None}

    @hypothesis.settings(**options, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])
    @hypothesis.given(sizes(count), sizes(count))
    @hypothesis.example(4, 500)  # few queries, and a batch that eight devices do not divide
    def check(n, m):
        compare(devices, n, m)

    check()


if __name__ == "__main__":
    main(int(sys.argv[1]))
