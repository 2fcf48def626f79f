import jax.numpy as jnp
import numpy as np
import pytest

from lpl import translation

HUBNESS = translation.Hubness(hubness_words=25, csls_neighbours=5, inverse_temperature=20.0)


@pytest.fixture(scope="module")
def spaces():
    rng = np.random.default_rng(0)
    source = rng.standard_normal((50, 6))
    target = np.concatenate([source[:30] + 0.8 * rng.standard_normal((30, 6)), source[:20]])
    return [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (source, target)]


@pytest.mark.parametrize("retrieval", translation.RETRIEVALS)
def test_precision_is_that_of_the_definition_of_each_retrieval(spaces, retrieval):
    x, z = spaces
    queries = np.array([1, 4, 25, 29])
    translations = np.array([[1, 31], [4, -1], [25, -1], [3, 29]])
    cos, others = x[queries] @ z.T, x[::2] @ z.T
    scores = {
        "nn": cos,
        "csls": 2 * cos - np.sort(others, axis=0)[-5:].mean(axis=0),
        "inverted_softmax": np.exp(20 * cos) / np.exp(20 * others).sum(axis=0),
    }[retrieval]
    order = np.argsort(-scores, axis=1)
    expected = {}
    for k in (1, 5, 10):
        hits = [{*o[:k]} & {*g} for o, g in zip(order, translations, strict=True)]
        expected[f"p_at_{k}"] = np.mean([bool(hit) for hit in hits])
    scaled = 3 * x  # precision does not depend on the norms
    arguments = map(jnp.asarray, (scaled, z, queries, translations))
    precision = translation.precision(*arguments, retrieval, HUBNESS)
    assert precision == pytest.approx(expected)
    assert expected["p_at_10"] > 0


def test_nearest_words_of_a_word_of_its_translation_and_in_both_languages():
    x = jnp.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    z = jnp.array([[1.0, 0.05], [0.0, 1.0], [0.1, 1.0]])
    words = ["cat", "kitten", "tax"], ["chat", "impôt", "taxe"]
    nearest = translation.nearest_words(x, z, (0, 0), words, 2)
    assert nearest["source"] == ["kitten", "tax"]
    assert nearest["target"] == ["taxe", "impôt"]
    assert nearest["both"] == ["chat*", "kitten"]
