"""Debiased Sinkhorn divergences of 1,024 pairs of small clouds in the plane: value and gradient."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Case, Side, Subject, Work, cores
from wasserstein_embed import cloud

PAIRS, PLANE = 1_024, 2
EPSILON = 0.05  # of the squared distance; points are drawn from the unit square
ITERATIONS = 20
EXACT = 500  # iterations of the values that errors are measured from


def load(points: int) -> np.ndarray:
    """All clouds, uniform in squares of a place of their own each: [2, pairs, points, 2]."""
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 0.5, (2, PAIRS, 1, PLANE))
    return (place + rng.uniform(0, 0.5, (2, PAIRS, points, PLANE))).astype(np.float32)


def work(points: int) -> Work:
    """Three problems a pair, 2 log-sum-exps an iteration of 5 operations an entry, twice back.

    5: difference, maximum, difference, exponential, sum. Bytes: points and gradient.
    """
    entries = 3.0 * PAIRS * points**2
    return Work(3 * entries * ITERATIONS * 2 * 5, 4.0 * PAIRS * points * PLANE * 3)


def ours(iterations: int, implicit: bool):
    """`cloud.pairs` of x and y, where each cloud is in one pair."""
    distance = cloud.Distance("euclidean", 2, EPSILON, iterations, "divergence", implicit)

    def value(x, y):
        clouds = cloud.Clouds(jnp.concatenate([x, y]))
        index = jnp.arange(len(x))
        return cloud.pairs(clouds, index, index + len(x), distance)

    return value


def _differentiated(value):
    """A call that gives the values and the gradient of their sum."""

    @jax.jit
    def both(x, y):
        def total(x):
            values = value(x, y)
            return values.sum(), values

        gradient, values = jax.grad(total, has_aux=True)(x)
        return values, gradient

    return both


def _ours(data, implicit):
    x, y = map(jnp.asarray, data)
    return partial(_differentiated(ours(ITERATIONS, implicit)), x, y)


def _ott(data):
    from common import ot

    x, y = map(jnp.asarray, data)
    one = partial(ot.divergence, epsilon=EPSILON, iterations=ITERATIONS)
    return partial(_differentiated(jax.vmap(lambda x, y: one(x, y)[0])), x, y)


def _geomloss(data):
    """Epsilon falls from the squared diameter by a factor a step, chosen for as many steps."""
    import torch
    from geomloss import SamplesLoss

    torch.set_num_threads(cores())
    x, y = map(torch.from_numpy, data)
    blur, diameter = (EPSILON / 2) ** 0.5, 2**0.5  # its cost is half the squared distance
    loss = SamplesLoss(
        "sinkhorn",
        p=2,
        blur=blur,
        diameter=diameter,
        scaling=(blur / diameter) ** (1 / (ITERATIONS - 1)),
        backend="tensorized",
    )

    def call():
        moving = x.clone().requires_grad_()
        values = 2 * loss(moving, y)
        values.sum().backward()
        return values.detach().numpy(), moving.grad.numpy()

    return call


def _pot(data):
    """Three batched solves; gradients by the envelope theorem, its default."""
    import torch
    from ot.batch import solve_sample_batch

    torch.set_num_threads(cores())
    x, y = map(torch.from_numpy, data)

    def solve(x, y):
        options = {"max_iter": ITERATIONS, "tol": 0.0, "reg_type": "kl", "method": "log_sinkhorn"}
        return solve_sample_batch(x, y, reg=EPSILON, **options).value

    def call():
        moving = x.clone().requires_grad_()
        values = solve(moving, y) - (solve(moving, moving) + solve(y, y)) / 2
        values.sum().backward()
        return values.detach().numpy(), moving.grad.numpy()

    return call


def score(data, found) -> dict[str, float]:
    """Relative errors of the values and the gradient against those of far more iterations."""
    x, y = map(jnp.asarray, data)
    some = slice(0, 64)
    exact = _differentiated(ours(EXACT, False))(x[some], y[some])
    return {
        name: float(jnp.linalg.norm(theirs[some] - right) / jnp.linalg.norm(right))
        for name, theirs, right in zip(("value_error", "gradient_error"), found, exact, strict=True)
    }


def case(points: int, **options) -> Case:
    """Clouds of so many points."""
    return Case(f"M={points}", points, partial(load, points), lambda data: work(points), **options)


UNROLLED = "isthmus, through the iterations"
SUBJECT = Subject(
    title="Sinkhorn divergence of 1,024 pairs, value and gradient",
    goal=">= 3",
    note=(
        f"Squared distances in the plane, epsilon {EPSILON}, {ITERATIONS} iterations of each but "
        "geomloss, whose epsilon falls in as many steps. Gradients of the first side, geomloss "
        "and POT are those of the optimum, of the others they go back through the iterations. "
        f"Errors: relative, of the first 64 pairs, against {EXACT} iterations. FLOPs: three "
        "problems, 10 an entry and iteration, and twice that for the gradient."
    ),
    cases=(case(3, memory=True), case(16, memory=True), case(64, memory=True, rounds=3)),
    quick=case(3, memory=True),
    sides={
        "isthmus": Side(partial(_ours, implicit=True)),
        UNROLLED: Side(partial(_ours, implicit=False), like=(UNROLLED,)),
        "geomloss": Side(_geomloss, needs="geomloss"),
        "POT, batched": Side(_pot, needs="ot.batch"),
        "ott, vmap": Side(_ott, needs="ott", like=(UNROLLED,)),
    },
    score=score,
    axis="points of a cloud",
)
