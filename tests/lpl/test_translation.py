import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from common.errors import UserError
from lpl import translation

CONFIG = ConfigDict({"hubness_words": 25, "neighbours": 5, "inverse_temperature": 20.0})


@pytest.fixture(scope="module")
def spaces():
    rng = np.random.default_rng(0)
    source = rng.standard_normal((50, 6))
    target = np.concatenate([source[:30] + 0.8 * rng.standard_normal((30, 6)), source[:20]])
    return source / np.linalg.norm(source, axis=1, keepdims=True), target / np.linalg.norm(
        target, axis=1, keepdims=True
    )


@pytest.mark.parametrize("retrieval", translation.RETRIEVALS)
def test_precision_is_that_of_the_definitions(spaces, retrieval):
    x, z = spaces
    queries = np.array([1, 4, 25, 29])
    gold = np.array([[1, 31], [4, -1], [25, -1], [3, 29]])
    cos, others = x[queries] @ z.T, x[::2] @ z.T
    scores = {
        "nn": cos,
        "csls": 2 * cos - np.sort(others, axis=0)[-5:].mean(axis=0),
        "inverted_softmax": np.exp(20 * cos) / np.exp(20 * others).sum(axis=0),
    }[retrieval]
    order = np.argsort(-scores, axis=1)
    expected = {
        f"p_at_{k}": np.mean([bool({*o[:k]} & {*g}) for o, g in zip(order, gold, strict=True)])
        for k in (1, 5, 10)
    }
    found = translation.precision(
        jnp.asarray(3 * x, jnp.float32),  # lengths have no say
        jnp.asarray(z, jnp.float32),
        jnp.asarray(queries),
        jnp.asarray(gold),
        retrieval,
        CONFIG,
    )
    assert found == pytest.approx(expected)
    assert expected["p_at_10"] > 0


def test_an_unknown_retrieval(spaces):
    x, z = map(jnp.asarray, spaces)
    with pytest.raises(UserError, match="no retrieval 'guess': choose nn, csls, inverted_softmax"):
        translation.precision(x, z, jnp.array([0]), jnp.array([[0]]), "guess", CONFIG)


def test_surroundings():
    x = jnp.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    z = jnp.array([[1.0, 0.05], [0.0, 1.0], [0.1, 1.0]])
    names = ["cat", "kitten", "tax"], ["chat", "impôt", "taxe"]
    found = translation.surroundings(x, z, 0, 0, names, 2)
    assert found["source"] == ["kitten", "tax"]
    assert found["target"] == ["taxe", "impôt"]
    assert found["aligned"] == ["chat*", "kitten"]
