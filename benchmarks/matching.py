"""Matching two word spaces: our streamed functions against public peers, same data, one run.

  python -m benchmarks.matching --num_words=4000

Each line is the best of several calls, compilation left out. The work needed is one product of all
pairs, 2 n^2 d FLOPs, so the time of a plain matrix product here is the floor for any exact method.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import ot as pot
from absl import app, flags
from ott.geometry import costs, pointcloud
from ott.solvers import linear
from sklearn.neighbors import NearestNeighbors

from common import ot
from common.data import words
from common.data.wheels import cache_dir
from common.report import markdown
from common.retrieval import csls_top_k, top_k

NUM_WORDS = flags.DEFINE_integer("num_words", 4000, "Words of the minilm spaces.")
REPEATS = flags.DEFINE_integer("repeats", 3, "Calls of each, the best counts.")


def seconds(call: Callable[[], object]) -> float:
    """Wall time of the best call after one that compiles."""
    times = []
    for _ in range(REPEATS.value + 1):
        start = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - start)
    return min(times[1:])


def csls_dense(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """CSLS nearest neighbours as published code does it: whole matrices, in numpy."""
    s = x @ y.T
    rx = np.partition(s, -10, axis=1)[:, -10:].mean(1)
    ry = np.partition(s, -10, axis=0)[-10:].mean(0)
    return (2 * s - rx[:, None] - ry).argmax(1)


def ott_dense(x: jax.Array, y: jax.Array) -> jax.Array:
    """One Sinkhorn iteration and the argmax of the plan, by ott."""
    geometry = pointcloud.PointCloud(x, y, cost_fn=costs.Euclidean(), epsilon=1e-2)
    out = linear.solve(geometry, min_iterations=1, max_iterations=1)
    return out.matrix.argmax(0)


def pot_dense(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same by POT, in the log domain."""
    weights = np.full(len(x), 1 / len(x), np.float32)
    cost = pot.dist(x, y, metric="euclidean")
    return pot.sinkhorn(
        weights, weights, cost, 1e-2, method="sinkhorn_log", numItermax=1, warn=False
    ).argmax(0)


def main(argv: list[str]) -> None:
    """Prints the table."""
    del argv
    x, y = (
        words.load(name, NUM_WORDS.value, cache_dir()).vectors
        for name in ("minilm", "minilm_input")
    )
    x, y = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, y))
    a, b = jnp.asarray(x), jnp.asarray(y)
    neighbours = NearestNeighbors(n_neighbors=10, algorithm="brute").fit(y)
    product = jax.jit(lambda a, b: (a @ b.T).max())
    floor = seconds(lambda: product(a, b))
    pairs = [
        ("10 nearest", lambda: top_k(a, b, 10), "scikit-learn", lambda: neighbours.kneighbors(x)),
        ("CSLS nearest", lambda: csls_top_k(a, b, 1), "numpy, dense", lambda: csls_dense(x, y)),
        ("Sinkhorn match", lambda: ot.match(a, b, 1e-2), "ott, dense", lambda: ott_dense(a, b)),
        ("Sinkhorn match", lambda: ot.match(a, b, 1e-2), "POT, dense", lambda: pot_dense(x, y)),
    ]
    lines = []
    for name, ours, peer, theirs in pairs:
        mine, other = seconds(ours), seconds(theirs)
        cells = (f"{mine:.3f}", peer, f"{other:.3f}", f"{other / mine:.1f}", f"{mine / floor:.1f}")
        lines.append((name, *cells))
    header = ("Task", "Ours (s)", "Peer", "Peer (s)", "Peer / ours", "Ours / one product")
    print(f"{len(x):,} x {len(y):,} rows, d = {x.shape[1]}, {jax.devices()[0].device_kind}")
    print(f"One product: {floor:.3f} s, {2e-9 * len(x) ** 2 * x.shape[1] / floor:.0f} GFLOP/s\n")
    print(markdown(header, lines))


if __name__ == "__main__":
    app.run(main)
