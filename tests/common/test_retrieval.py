import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import retrieval
from common.linear import unit

UNEVEN = [(1, 1, 1), (23, 17, 5), (9, 40, 10)]  # n, m, k


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrieval, "block_rows", lambda columns: 8)
        patch.setattr(retrieval, "MIN_TILE_KEYS", 6)  # two tiles and a remainder, four tiles
        patch.setattr(retrieval, "TILE_QUERIES", 8)
        jax.clear_caches()
        yield
    jax.clear_caches()


def unit_rows(seed, n, d=6):
    return unit(np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32))


def integer_rows(seed, n, d=3):
    """Few distinct rows: most similarities are tied, and products are exact in float32."""
    return np.random.default_rng(seed).integers(-1, 2, (n, d)).astype(np.float32)


def order(score, k):
    return np.argsort(-score, axis=1, kind="stable")[:, :k]


def best(score, k):
    return -np.sort(-score, axis=1)[:, :k]


def csls(x, y, neighbours):
    similarity = (x @ y.T).astype(np.float64)
    own = best(similarity, min(neighbours, len(y))).mean(1, keepdims=True)
    return 2 * similarity - own - best(similarity.T, min(neighbours, len(x))).mean(1)


@pytest.mark.parametrize("n, m, k", UNEVEN)
def test_top_k_agrees_with_sorting(n, m, k):
    x, y = unit_rows(0, n), unit_rows(1, m)
    values, index = retrieval.top_k(x, y, k)
    np.testing.assert_array_equal(index, order(x @ y.T, k))
    np.testing.assert_allclose(values, best(x @ y.T, k), atol=1e-6)
    np.testing.assert_allclose(retrieval.mean_top_k(x, y, k), best(x @ y.T, k).mean(1), atol=1e-6)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([(7, 12), (22, 12)]))
def test_exact_ties_go_to_the_lower_index(seed, shape):
    x, y = integer_rows(seed, shape[0]), integer_rows(seed + 1, shape[1])
    np.testing.assert_array_equal(retrieval.top_k(x, y, 5)[1], order(x @ y.T, 5))
    # The mean of two neighbours is exact as well.
    expected = order(csls(x, y, 2), 4)
    np.testing.assert_array_equal(retrieval.csls_top_k(x, y, 4, 2)[1], expected)


@pytest.mark.parametrize("n, m, k", UNEVEN)
def test_csls_top_k_agrees_with_its_definition(n, m, k):
    x, y = unit_rows(2, n), unit_rows(3, m)
    values, index = retrieval.csls_top_k(x, y, k, 12)  # more neighbours than rows
    expected = csls(x, y, 12)
    np.testing.assert_array_equal(index, order(expected, k))
    np.testing.assert_allclose(values, best(expected, k), atol=1e-5)


@pytest.mark.parametrize("n, m, k", UNEVEN)
@pytest.mark.parametrize("beta", [1.0, 30.0])
def test_inverted_softmax_top_k_agrees_with_its_definition(n, m, k, beta):
    x, y = unit_rows(4, n), unit_rows(5, m)
    logits = beta * (x @ y.T).astype(np.float64)
    softmax = np.exp(logits) / np.exp(logits).sum(0)  # over the queries: eq. 9
    values, index = retrieval.inverted_softmax_top_k(x, y, k, beta)
    np.testing.assert_array_equal(index, order(softmax, k))
    np.testing.assert_allclose(np.exp(values), best(softmax, k), rtol=1e-4)


def test_csls_and_inverted_softmax_correct_for_hubness():
    """A key near to all queries ranks below the key that is near to one query only."""
    queries = np.eye(3, dtype=np.float32)
    hub = np.full((1, 3), 0.9, np.float32)
    keys = np.concatenate([hub, 0.8 * np.eye(3, dtype=np.float32)])
    np.testing.assert_array_equal(retrieval.top_k(queries, keys, 1)[1][:, 0], [0, 0, 0])
    np.testing.assert_array_equal(retrieval.csls_top_k(queries, keys, 1, 3)[1][:, 0], [1, 2, 3])
    found = retrieval.inverted_softmax_top_k(queries, keys, 1)[1][:, 0]
    np.testing.assert_array_equal(found, [1, 2, 3])


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="tests XLA's CPU backend")
@pytest.mark.parametrize("name", ["top_k", "csls_top_k", "inverted_softmax_top_k"])
def test_compiled_programs_have_no_sort(name, monkeypatch):
    """XLA turns a top_k whose result is sliced into a sort, 30 times slower."""
    monkeypatch.setattr(retrieval, "MIN_TILE_KEYS", 20)
    jax.clear_caches()
    fn = jax.jit(lambda x, y: getattr(retrieval, name)(x, y, 5)[1][:, 0])
    compiled = fn.lower(unit_rows(0, 41), unit_rows(1, 61)).compile().as_text()
    assert "TopK" in compiled and " sort(" not in compiled


@pytest.mark.parametrize("m", [2_592, 2_607])
def test_largest_of_long_rows_agrees_with_sorting(m):
    scores = np.random.default_rng(0).integers(0, 300, (5, m)).astype(np.float32)  # many ties
    values, index = retrieval.largest(scores, 5)
    np.testing.assert_array_equal(index, order(scores, 5))
    np.testing.assert_array_equal(values, best(scores, 5))


def test_bfloat16_rows_are_summed_in_float32():
    x, y = unit_rows(0, 9, 64), unit_rows(1, 40, 64)
    rounded = [jnp.asarray(z, jnp.bfloat16) for z in (x, y)]
    values, index = retrieval.csls_top_k(*rounded, 5)
    assert values.dtype == jnp.float32
    # Equal to the result for the rounded rows in float32: no sum is rounded to eight bits.
    exact = retrieval.csls_top_k(*(z.astype(jnp.float32) for z in rounded), 5)
    np.testing.assert_array_equal(index, exact[1])
    np.testing.assert_allclose(values, exact[0], atol=1e-6)
    np.testing.assert_allclose(values, best(csls(x, y, 10), 5), atol=0.01)


@pytest.mark.parametrize(("n", "m", "frequent"), [(37, 23, 100), (20, 45, 15)])
def test_a_dictionary_is_csls_with_the_hubness_of_frequent_rows(n, m, frequent):
    x, y = unit_rows(0, n, 5), unit_rows(1, m, 5)
    found = retrieval.csls_dictionary(x, y, neighbours=3, frequent=frequent)
    s = x @ y.T
    rx = np.sort(s[:, :frequent], axis=1)[:, -3:].mean(1)
    ry = np.sort(s[:frequent], axis=0)[-3:].mean(0)
    scores = 2 * s - rx[:, None] - ry
    to_target = np.asarray(found.to_target)
    np.testing.assert_array_equal(to_target, scores.argmax(1))
    np.testing.assert_array_equal(found.to_source, scores.argmax(0))
    np.testing.assert_allclose(found.score, scores.max(1), atol=1e-5)
    np.testing.assert_array_equal(found.mutual, scores.argmax(0)[to_target] == np.arange(n))
    e = np.exp(30 * s)
    probability = np.minimum(e / e.sum(1, keepdims=True), e / e.sum(0))
    np.testing.assert_allclose(found.confidence, probability[np.arange(n), to_target], rtol=1e-4)
    rows, columns = np.arange(n), np.arange(n)[::-1] % m
    given = retrieval.confidence(x, y, rows, columns)
    np.testing.assert_allclose(given, probability[rows, columns], rtol=1e-4)
