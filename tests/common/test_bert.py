from pathlib import Path

import numpy as np
import pytest

from common.data.packages import cache_dir
from common.encoders import bert, minilm
from common.encoders import texts as text_encoders

pytestmark = pytest.mark.network

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture(scope="module")
def encoder():
    return bert.load(text_encoders.read_files("minilm", cache_dir()), "minilm")


@pytest.mark.parametrize(
    ("name", "length"), [("minilm", 256), pytest.param("mpnet", 384, marks=pytest.mark.slow)]
)
def test_vectors_agree_with_the_stored_reference(name, length):
    encoder = bert.load(text_encoders.read_files(name, cache_dir()), name)
    assert encoder[2:] == ("mean", length)
    with np.load(FIXTURES / f"{name}_reference.npz") as reference:
        vectors = bert.encode(encoder, reference["texts"].tolist())
        np.testing.assert_allclose(vectors, reference["vectors"], atol=1e-5)


def test_texts_of_all_lengths_have_few_shapes(encoder):
    """Rows of 64 tokens, of 128 and of 256; each text as if it were alone."""
    texts = ["word " * length for length in (0, 1, 3, 30, 61, 62, 63, 100, 126, 127, 200)]
    bert._step.clear_cache()
    vectors = bert.encode(encoder, texts)
    assert bert._step._cache_size() == 3
    alone = np.concatenate([bert.encode(encoder, [text]) for text in texts])
    np.testing.assert_allclose(vectors, alone, atol=1e-6)


def test_an_empty_list_of_texts(encoder):
    assert bert.encode(encoder, []).shape == (0, 384)


def test_the_minilm_space_has_the_encoded_words(encoder):
    space = minilm.load("minilm", cache_dir())
    rows = [0, 7, 500, 1999]
    vectors = bert.encode(encoder, [space.words[row] for row in rows])
    np.testing.assert_allclose(vectors, space.vectors[rows], atol=1e-5)


def test_a_vector_does_not_depend_on_the_other_texts(encoder):
    texts = ["a bridge", "", "one two three four five six seven eight nine ten eleven", "land"]
    together = bert.encode(encoder, texts)
    np.testing.assert_allclose(bert.encode(encoder, texts[::-1])[::-1], together, atol=1e-6)
    alone = np.concatenate([bert.encode(encoder, [text]) for text in texts])
    np.testing.assert_allclose(alone, together, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
