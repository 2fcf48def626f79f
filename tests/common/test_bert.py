import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from common import bert
from common.data import words
from common.data.wheels import WHEELS, cache_dir, read_member
from common.errors import UserError

REFERENCE = Path(__file__).parents[1] / "fixtures" / "minilm_reference.npz"


def read(name):
    return read_member(WHEELS["minilm"], cache_dir(), f"{words.MINILM_FOLDER}/{name}")


@pytest.fixture(scope="module")
def minilm():
    return bert.load(read)


def test_agrees_with_the_stored_vectors(minilm):
    with np.load(REFERENCE) as reference:
        found = bert.encode(*minilm, reference["texts"].tolist())
        np.testing.assert_allclose(found, reference["vectors"], atol=1e-5)


def test_a_vector_depends_on_neither_order_nor_neighbours(minilm):
    texts = ["a bridge", "", "one two three four five six seven eight nine ten eleven", "land"]
    together = bert.encode(*minilm, texts)
    np.testing.assert_allclose(
        bert.encode(*minilm, texts[::-1], batch_size=2)[::-1], together, atol=1e-6
    )
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_long_texts_are_cut(minilm):
    long, longer = bert.encode(*minilm, ["word " * 6, "word " * 20], max_length=8)
    np.testing.assert_allclose(long, longer, atol=1e-6)


def test_no_texts(minilm):
    assert bert.encode(*minilm, []).shape == (0, 384)


def test_the_minilm_space_holds_the_encoded_words(minilm):
    space = words.load("minilm", 2000, cache_dir())
    rows = [0, 7, 500, 1999]
    found = bert.encode(*minilm, [space.words[row] for row in rows])
    np.testing.assert_allclose(found, space.vectors[rows], atol=1e-5)


def test_the_minilm_input_space_holds_mean_word_pieces(minilm):
    _, tokenizer = minilm
    weights = safetensors.numpy.load(read("model.safetensors"))
    table = weights["embeddings.word_embeddings.weight"]
    vocabulary = tokenizer.get_vocab()
    space = words.load("minilm_input", words.NUM_WORDS, cache_dir())
    row = space.words.index("netanyahu")
    pieces = [vocabulary["net"], vocabulary["##any"], vocabulary["##ahu"]]
    np.testing.assert_allclose(space.vectors[row], table[pieces].mean(0), atol=1e-6)
    np.testing.assert_array_equal(space.vectors[0], table[vocabulary["the"]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_hidden_layers": 7}, r"no parameter encoder\.layer\.6"),
        ({"vocab_size": 99}, r"word_embeddings\.weight has shape \(30522, 384\)"),
    ],
)
def test_a_checkpoint_that_does_not_fit_its_config(change, message):
    def changed(name):
        if name == "config.json":
            return json.dumps(json.loads(read(name)) | change).encode()
        return read(name)

    with pytest.raises(UserError, match=message):
        bert.load(changed)
