"""Transport by ott-jax, compared with POT."""

import numpy as np
import ot as pot
import pytest
from scipy.spatial.distance import cdist

from common import ot


def costs(n, m, d=5, seed=0, metric="euclidean"):
    rng = np.random.default_rng(seed)
    return cdist(rng.normal(size=(n, d)), rng.normal(size=(m, d)), metric)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_plan_and_costs_agree_with_pot(metric):
    cost = costs(12, 9, metric=metric)
    a, b = (w / w.sum() for w in (np.arange(1.0, 13), np.arange(2.0, 11)))
    plan = pot.sinkhorn(a, b, cost, 1.0, method="sinkhorn_log", numItermax=3000, stopThr=1e-12)
    ours = ot.transport(cost, a, b, epsilon=1.0, iterations=1000)
    np.testing.assert_allclose(ours.matrix, plan, atol=1e-5)
    np.testing.assert_allclose(ours.primal_cost, (plan * cost).sum(), rtol=1e-5)
    relative_entropy = (plan * np.log(plan / np.outer(a, b))).sum()
    np.testing.assert_allclose(ours.reg_ot_cost, (plan * cost).sum() + relative_entropy, rtol=1e-5)


@pytest.mark.parametrize("n, m", [(1, 1), (7, 19)])
def test_kernel_updates_agree_with_pot(n, m):
    cost = costs(n, m)
    expected = pot.sinkhorn(
        np.full(n, 1 / n), np.full(m, 1 / m), cost, 0.3, stopThr=0, numItermax=10
    )
    ours = ot.transport(cost, epsilon=0.3, iterations=10, log_domain=False)
    np.testing.assert_allclose(ours.matrix, expected, atol=1e-5)
