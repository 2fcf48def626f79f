"""Maps of several spaces into common coordinates."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes

from common.linear import unit
from isthmus.align import joined

N = 60


def rotated(rng, dimensions, noise=0.0):
    """Spaces of the same N items in the same order, of at most the latent number of dimensions."""
    latent = rng.normal(size=(N, max(dimensions)))
    spaces = {}
    for name, d in zip("abcdef", dimensions, strict=False):
        rotation = np.linalg.qr(rng.normal(size=(latent.shape[1],) * 2))[0]
        x = latent @ rotation[:, :d] + noise * rng.normal(size=(N, d))
        spaces[name] = jnp.asarray(unit(x), jnp.float32)
    return spaces


def same(links, rows=N):
    return {link: np.stack([np.arange(rows)] * 2, axis=1) for link in links}


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 4]))
def test_rotated_copies_are_mapped_onto_each_other(random_seed, count):
    spaces = rotated(np.random.default_rng(random_seed), [6] * count)
    names = list(spaces)
    chain = [(b, a) for a, b in itertools.pairwise(names)]  # the reference is at one end
    for links in (chain, list(itertools.combinations(names, 2))):
        maps = joined.fit(spaces, same(links), names[0])
        np.testing.assert_array_equal(maps[names[0]], np.eye(6))
        for name in names:
            np.testing.assert_allclose(spaces[name] @ maps[name], spaces[names[0]], atol=2e-5)


def test_two_spaces_get_the_map_of_orthogonal_procrustes():
    spaces = rotated(np.random.default_rng(0), [6, 6], noise=0.5)
    matrix = joined.fit(spaces, same([("b", "a")]), "a")["b"]
    expected = orthogonal_procrustes(*(np.asarray(spaces[n], np.float64) for n in "ba"))[0]
    np.testing.assert_allclose(matrix, expected, atol=1e-4)


@pytest.mark.slow
@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(7, 4, 5), (3, 6, 4, 3)]))
def test_the_maps_are_orthogonal_and_no_single_one_can_be_better(random_seed, dimensions):
    spaces = rotated(np.random.default_rng(random_seed), dimensions, noise=0.5)
    links = list(itertools.combinations(spaces, 2))
    maps = joined.fit(spaces, same(links), "a")
    for name, matrix in maps.items():
        gram = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
        np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-4)
        if name != "a":
            # <W, G> is at most the sum of the singular values of G, the sum over all other spaces.
            others = sum(spaces[j] @ maps[j] for j in spaces if j != name)
            pull = np.asarray(spaces[name].T @ others, np.float64)
            bound = np.linalg.svd(pull, compute_uv=False).sum()
            assert np.vdot(matrix, pull) > 0.99 * bound


def test_all_pairs_of_spaces_are_matched():
    rng = np.random.default_rng(1)
    spaces = rotated(rng, [8, 8, 8], noise=0.2)
    order = {name: rng.permutation(N) for name in spaces}
    shuffled = {name: x[order[name]] for name, x in spaces.items()}
    truth = {(i, j): np.argsort(order[j])[order[i]] for i in spaces for j in spaces}
    known = {
        link: np.stack([np.arange(N), truth[link]], axis=1)[:40]
        for link in (("b", "a"), ("c", "b"))
    }
    result = joined.in_common(shuffled, known, "a")
    assert set(result.pairs) == {("a", "b"), ("a", "c"), ("b", "c")}
    for link, pairs in result.pairs.items():
        assert len(pairs) > 0.8 * N and (truth[link][pairs[:, 0]] == pairs[:, 1]).mean() > 0.95
