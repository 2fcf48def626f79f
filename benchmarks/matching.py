"""One matching step of Algorithm 1: relative spaces of 300 anchors, a Sinkhorn iteration, argmax.

The cost is the Euclidean distance and epsilon is 1e-4 (Table 3 of the paper). All implementations
take the two spaces and the anchors, and return the row of x for each row of y.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from anchor_opt.methods import algorithm1
from anchor_opt.relative import relative
from benchmarks.harness import Case, Implementation, Work, cores, torch_device
from common.data.packages import cache_dir
from common.linear import preprocess
from common.run.settings import settings
from common.spaces import paired_spaces
from configs.anchor_opt import retrieval

EPSILON = 1e-4
SETTINGS = settings(algorithm1.Step, retrieval.get_config().algorithm1)
ANCHORS = 300
BLOCK = 2048  # rows that the torch implementation processes at once


def load(target: str, n: int) -> tuple[np.ndarray, ...]:
    """Two spaces x and y, and their true parallel anchors."""
    pair = paired_spaces.load("minilm_input", target, num_words=n, cache=cache_dir())
    x, y = (np.asarray(preprocess(jnp.asarray(part))) for part in (pair.source, pair.target))
    rows = np.random.default_rng(0).permutation(n)[:ANCHORS]
    return x, y, x[rows], y[rows]


def work(data: tuple[np.ndarray, ...]) -> Work:
    """2 n^2 r for the products, r the smallest of both dimensions and the anchors; 8 for each pair.

    The eight are a square root, two exponentials, sums and maxima. Bytes: both spaces, the anchors,
    and the result.
    """
    n, dims = len(data[0]), [part.shape[1] for part in data[:2]]
    r = min(*dims, ANCHORS)
    return Work(2.0 * n * n * r + 8.0 * n * n, 4.0 * sum(dims) * (n + ANCHORS) + 12.0 * n)


def _ours(data):
    x, y, anchors_x, anchors_y = map(jnp.asarray, data)
    # Prepared once per run, since the anchors of x do not change.
    prepared = algorithm1.prepare(x, anchors_x, y)
    step = jax.jit(lambda data, anchors: algorithm1.sinkhorn_matching(data, anchors, SETTINGS).to_x)
    return partial(step, prepared, anchors_y)


def _torch(data):
    """Products over blocks of rows, as one would write it without a library for transport."""
    import torch

    torch.set_num_threads(cores())
    device = torch_device()
    x, y, anchors_x, anchors_y = (torch.from_numpy(array).to(device) for array in data)
    relative_x = x @ anchors_x.T

    def step():
        relative_y = y @ anchors_y.T
        n, m = len(relative_x), len(relative_y)
        squares = (relative_y * relative_y).sum(1)
        best = torch.full((m,), -torch.inf, device=device)
        choice = torch.zeros(m, dtype=torch.long, device=device)
        mass = torch.zeros(m, device=device)
        for start in range(0, n, BLOCK):
            rows = relative_x[start : start + BLOCK]
            cost = torch.addmm(
                squares + (rows * rows).sum(1, keepdim=True), rows, relative_y.T, alpha=-2
            )
            score = cost.clamp_(min=0).sqrt_().div_(-EPSILON)
            score -= torch.logsumexp(score, 1, keepdim=True)
            value, index = score.max(0)
            new = torch.maximum(best, value)
            mass = mass * torch.exp(best - new) + score.sub_(new).exp_().sum(0)
            choice = torch.where(value > best, index + start, choice)
            best = new
        return choice.cpu().numpy()

    return step


def _ott(data):
    from ott.geometry import costs, pointcloud
    from ott.solvers import linear

    x, y, anchors_x, anchors_y = map(jnp.asarray, data)
    relative_x = relative(x, anchors_x)

    @jax.jit
    def step(y, anchors):
        # The anchors of y first, since ott begins with the potential of its second cloud.
        clouds = relative(y, anchors), relative_x
        geometry = pointcloud.PointCloud(*clouds, cost_fn=costs.Euclidean(), epsilon=EPSILON)
        once = dict.fromkeys(("min_iterations", "max_iterations", "inner_iterations"), 1)
        return linear.solve(geometry, **once).matrix.argmax(1)

    return partial(step, y, anchors_y)


def score(data, result) -> dict[str, float]:
    """The fraction of words matched with themselves."""
    return {"correct": float(np.mean(np.asarray(result) == np.arange(len(data[1]))))}


TITLE = "A matching step of Algorithm 1, 300 anchors"
GOAL = ">= 3 and half the memory"
NOTE = (
    "FLOPs: 2 n^2 r + 8 n^2, r the smallest of both dimensions and 300: minilm has 384, glove "
    "50. ott holds all pairs of words."
)
CASES = (
    Case("minilm-2500", 2_500, ("minilm", 2_500), "minilm", rounds=2),
    Case("minilm-5000", 5_000, ("minilm", 5_000), "minilm", rounds=3),
    Case("minilm-10000", 10_000, ("minilm", 10_000), "minilm", rounds=3),
    Case("minilm-20000", 20_000, ("minilm", 20_000), "minilm", memory=True),
    Case("glove-5000", 5_000, ("glove", 5_000), "glove", rounds=2),
    Case("glove-16000", 16_000, ("glove", 16_000), "glove", rounds=3, memory=True),
)
QUICK = Case("minilm-500", 500, ("minilm", 500))
IMPLEMENTATIONS = {
    "isthmus": Implementation(_ours),
    "torch, blocks": Implementation(_torch, requires=("torch",)),
    "ott, dense": Implementation(_ott, requires=("ott",), max_n=5_000),
}
