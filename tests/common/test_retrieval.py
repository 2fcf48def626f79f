import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import csls, retrieval
from common.errors import UserError
from tests import samples
from tests.samples import csls_scores, integer_rows, unit_rows

UNEVEN = [(1, 1, 1), (23, 17, 5), (9, 40, 10)]  # n, m, k


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    with samples.small_blocks(retrieval):
        yield


def order(score, k):
    return np.argsort(-score, axis=1, kind="stable")[:, :k]


def best(score, k):
    return -np.sort(-score, axis=1)[:, :k]


@pytest.mark.parametrize("n, m, k", UNEVEN)
def test_top_k_agrees_with_sorting(n, m, k):
    x, y = unit_rows(0, n, 6), unit_rows(1, m, 6)
    values, index = retrieval.top_k(x, y, k)
    np.testing.assert_array_equal(index, order(x @ y.T, k))
    np.testing.assert_allclose(values, best(x @ y.T, k), atol=1e-6)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([(7, 12), (22, 5)]), st.sampled_from([0, 1]))
def test_the_first_of_the_largest_entries_is_that_of_argmax(seed, shape, axis):
    scores = jnp.asarray(np.random.default_rng(seed).integers(0, 4, shape), jnp.float32)
    best, place = retrieval.first_largest(scores, axis)
    np.testing.assert_array_equal(best, scores.max(axis))
    np.testing.assert_array_equal(place, scores.argmax(axis))


def test_float32_rows_are_retrieved_where_jax_has_float64():
    x, y = unit_rows(0, 9, 6), unit_rows(1, 40, 6)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(retrieval.top_k(x, y, 3)[1], order(x @ y.T, 3))


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([(7, 12), (22, 12)]))
def test_exact_ties_go_to_the_lower_index(seed, shape):
    x, y = integer_rows(seed, shape[0]), integer_rows(seed + 1, shape[1])
    np.testing.assert_array_equal(retrieval.top_k(x, y, 5)[1], order(x @ y.T, 5))


@pytest.mark.parametrize("n, m, k", UNEVEN)
@pytest.mark.parametrize("beta", [1.0, 30.0])
def test_inverted_softmax_top_k_agrees_with_its_definition(n, m, k, beta):
    x, y = unit_rows(4, n, 6), unit_rows(5, m, 6)
    logits = beta * (x @ y.T).astype(np.float64)
    softmax = np.exp(logits) / np.exp(logits).sum(0)  # over the queries: eq. 9
    values, index = retrieval.inverted_softmax_top_k(x, y, k, beta)
    np.testing.assert_array_equal(index, order(softmax, k))
    np.testing.assert_allclose(np.exp(values), best(softmax, k), rtol=1e-4)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="tests XLA's CPU backend")
@pytest.mark.parametrize("top_k", [retrieval.top_k, csls.top_k, retrieval.inverted_softmax_top_k])
def test_compiled_programs_have_no_sort(top_k, monkeypatch):
    """XLA turns a top_k whose result is sliced into a sort, 30 times slower."""
    monkeypatch.setattr(retrieval, "MIN_TILE_KEYS", 20)
    jax.clear_caches()
    fn = jax.jit(lambda x, y: top_k(x, y, 5).index[:, 0])
    compiled = fn.lower(unit_rows(0, 41, 6), unit_rows(1, 61, 6)).compile().as_text()
    assert "TopK" in compiled and " sort(" not in compiled


@pytest.mark.parametrize("device", ["cpu", "gpu", "tpu"])
@pytest.mark.parametrize(("m", "axis"), [(2_592, 1), (2_607, 0), (2_607, 1)])
def test_largest_of_long_rows_and_columns_agrees_with_sorting(m, axis, device, monkeypatch):
    monkeypatch.setattr(retrieval, "on_cpu", lambda: device == "cpu")
    monkeypatch.setattr(retrieval, "on_tpu", lambda: device == "tpu")
    scores = np.random.default_rng(0).integers(0, 300, (5, m)).astype(np.float32)  # many ties
    values, index = retrieval.largest(scores if axis else scores.T, 5, axis)
    np.testing.assert_array_equal(index, order(scores, 5))
    np.testing.assert_array_equal(values, best(scores, 5))


def test_bfloat16_rows_are_summed_in_float32():
    x, y = unit_rows(0, 9, 64), unit_rows(1, 40, 64)
    rounded = [jnp.asarray(z, jnp.bfloat16) for z in (x, y)]
    values, index = csls.top_k(*rounded, 5)
    assert values.dtype == jnp.float32
    # Equal to the result for the rounded rows in float32: no sum is rounded to eight bits.
    exact = csls.top_k(*(z.astype(jnp.float32) for z in rounded), 5)
    np.testing.assert_array_equal(index, exact.index)
    np.testing.assert_allclose(values, exact.values, atol=1e-6)
    np.testing.assert_allclose(values, best(csls_scores(x, y, 10), 5), atol=0.01)


@pytest.mark.parametrize("k", [0, 13])
def test_more_neighbours_than_there_are_rows_are_refused(k):
    x, y = unit_rows(0, 5, 6), unit_rows(1, 12, 6)
    for top_k in (retrieval.top_k, csls.top_k):
        with pytest.raises(UserError, match=f"k is {k} of 12 keys: choose at least 1, at most 12"):
            top_k(x, y, k)
