import itertools

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from anchor_opt.methods import clusters
from common.linear import unit


@given(st.integers(0, 1_000))
@settings(max_examples=10)
def test_the_assignment_of_small_matrices_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    a, b = (z + z.T for z in rng.normal(size=(2, 5, 5)).astype(np.float32))
    linear = 3 * rng.normal(size=(5, 5)).astype(np.float32)
    for added in (0 * linear, linear):

        def value(p, added=added):
            return np.sum(a * b[np.ix_(p, p)]) + 2 * added[np.arange(5), p].sum()

        best = max(value(np.array(p)) for p in itertools.permutations(range(5)))
        problem = (a[None], b[None], added[None])
        (p,) = clusters.assign(jax.random.key(seed), *problem, restarts=60, swaps=20)
        np.testing.assert_allclose(value(np.asarray(p)), best, rtol=1e-5)


def test_separated_clusters_have_the_centres_of_k_means():
    rng = np.random.default_rng(0)
    middle = np.eye(4, 6)[rng.permutation(np.repeat(np.arange(4), 30))]
    x = unit(jnp.asarray(middle + 0.05 * rng.normal(size=(120, 6)), jnp.float32))
    centres = clusters.sample_centres(jax.random.key(0), x, 4, 20, 120)
    expected = KMeans(4, n_init=10, random_state=0).fit(x).cluster_centers_
    distance = np.linalg.norm(np.asarray(centres)[:, :, None] - expected, axis=3).min(axis=1)
    # Not every sample begins with a row of each cluster.
    assert np.min(distance.max(axis=1)) < 1e-5
