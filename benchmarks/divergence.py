"""Sinkhorn divergences of 1,024 pairs of small clouds in the plane: values and gradients."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Case, Implementation, Work, cores, torch_device
from wasserstein_embed import cloud

PAIRS, PLANE = 1_024, 2
EPSILON = 0.05  # in units of the squared distance; points are drawn from the unit square
ITERATIONS = 20
REFERENCE_ITERATIONS = 500  # of the values with respect to which errors are computed


def load(points: int) -> np.ndarray:
    """Clouds that are uniform in a random square each: [2, pairs, points, 2]."""
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 0.5, (2, PAIRS, 1, PLANE))
    return (corner + rng.uniform(0, 0.5, (2, PAIRS, points, PLANE))).astype(np.float32)


def work(data: np.ndarray) -> Work:
    """Three problems per pair, and twice their work for the gradient.

    An iteration has 2 log-sum-exps, each with 5 operations per entry: difference, maximum,
    difference, exponential, sum. Bytes: points and gradient.
    """
    entries = 3.0 * PAIRS * data.shape[2] ** 2
    return Work(3 * entries * ITERATIONS * 2 * 5, 4.0 * 3 * data[0].size)


def ours(iterations: int, implicit_diff: bool):
    """`cloud.pair_distances` of x and y, where each cloud is in one pair."""
    solver = {"epsilon": EPSILON, "iterations": iterations, "implicit_diff": implicit_diff}
    distance = cloud.Distance(p=2, value="sinkhorn_divergence", **solver)

    def value(x, y):
        clouds = cloud.Clouds(jnp.concatenate([x, y]))
        index = jnp.arange(len(x))
        return cloud.pair_distances(clouds, index, index + len(x), distance)

    return value


def _with_gradient(value):
    """A function that returns the values and the gradient of their sum with respect to x."""

    @jax.jit
    def both(x, y):
        def total(x):
            values = value(x, y)
            return values.sum(), values

        gradient, values = jax.grad(total, has_aux=True)(x)
        return values, gradient

    return both


def _ours(data, implicit_diff):
    x, y = map(jnp.asarray, data)
    return partial(_with_gradient(ours(ITERATIONS, implicit_diff)), x, y)


def _ott(data):
    from ott.geometry import geometry
    from ott.tools import sinkhorn_divergence

    x, y = map(jnp.asarray, data)
    limits = dict.fromkeys(("min_iterations", "max_iterations", "inner_iterations"), ITERATIONS)
    options = limits | {"implicit_diff": None}

    def value(x, y):
        cost = [jnp.sum((p[:, None] - q) ** 2, axis=-1) for p, q in ((x, y), (x, x), (y, y))]
        return sinkhorn_divergence.sinkhorn_divergence(
            geometry.Geometry, cost_matrix=tuple(cost), epsilon=EPSILON, solve_kwargs=options
        )[0]

    return partial(_with_gradient(jax.vmap(value)), x, y)


def _torch(data, solver):
    """The call of a solver in PyTorch, which takes the points and returns the values."""
    import torch

    torch.set_num_threads(cores())
    x, y = (torch.from_numpy(array).to(torch_device()) for array in data)

    def call():
        points = x.clone().requires_grad_()
        values = solver(points, y)
        values.sum().backward()
        return values.detach().cpu().numpy(), points.grad.cpu().numpy()

    return call


def _geomloss(data):
    """Epsilon decreases from the squared diameter, by a factor chosen for as many iterations."""
    from geomloss import SamplesLoss

    blur, diameter = (EPSILON / 2) ** 0.5, 2**0.5  # its cost is half the squared distance
    scaling = (blur / diameter) ** (1 / (ITERATIONS - 1))
    options = {"blur": blur, "diameter": diameter, "scaling": scaling, "backend": "tensorized"}
    loss = SamplesLoss("sinkhorn", p=2, **options)
    return _torch(data, lambda x, y: 2 * loss(x, y))


def _pot(data):
    """Three batched problems; gradients by the envelope theorem, which is its default."""
    from ot.batch import solve_sample_batch

    def solve(x, y):
        options = {"max_iter": ITERATIONS, "tol": 0.0, "reg_type": "kl", "method": "log_sinkhorn"}
        return solve_sample_batch(x, y, reg=EPSILON, **options).value

    return _torch(data, lambda x, y: solve(x, y) - (solve(x, x) + solve(y, y)) / 2)


def score(data, solved) -> dict[str, float]:
    """Relative errors of values and gradient with respect to those of many more iterations."""
    x, y = map(jnp.asarray, data)
    rows = slice(0, 64)
    reference = _with_gradient(ours(REFERENCE_ITERATIONS, False))(x[rows], y[rows])
    names = "value_error", "gradient_error"
    return {
        name: float(jnp.linalg.norm(result[rows] - exact) / jnp.linalg.norm(exact))
        for name, result, exact in zip(names, solved, reference, strict=True)
    }


UNROLLED = "isthmus, through the iterations"
TITLE = "Sinkhorn divergence of 1,024 pairs, value and gradient"
GOAL = ">= 3"
NOTE = (
    f"Squared distances in the plane, epsilon {EPSILON}, {ITERATIONS} iterations each; "
    "geomloss decreases epsilon over as many iterations. The gradients of the first "
    "implementation, geomloss and POT are those of the optimum; the others are propagated "
    f"through the iterations. Errors: relative, of the first 64 pairs, with respect to "
    f"{REFERENCE_ITERATIONS} iterations. FLOPs: three problems with 10 for each entry and "
    "iteration, and twice that for the gradient."
)
CASES = (
    Case("M=3", 3, (3,), memory=True),
    Case("M=16", 16, (16,), memory=True),
    Case("M=64", 64, (64,), memory=True, rounds=3),
)
QUICK = Case("M=3", 3, (3,))
IMPLEMENTATIONS = {
    "isthmus": Implementation(partial(_ours, implicit_diff=True)),
    UNROLLED: Implementation(partial(_ours, implicit_diff=False), compared_with=(UNROLLED,)),
    "geomloss": Implementation(_geomloss, requires=("torch", "geomloss")),
    "POT, batched": Implementation(_pot, requires=("torch", "ot.batch")),
    "ott, vmap": Implementation(_ott, requires=("ott",), compared_with=(UNROLLED,)),
}
