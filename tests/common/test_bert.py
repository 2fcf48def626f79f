import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from common import bert
from common.data import english
from common.data.packages import cache_dir
from common.errors import UserError

REFERENCE = Path(__file__).parents[1] / "fixtures" / "minilm_reference.npz"


@pytest.fixture(scope="module")
def minilm():
    return english.load_minilm(cache_dir())


def test_vectors_agree_with_the_stored_reference(minilm):
    with np.load(REFERENCE) as reference:
        found = bert.encode(minilm, reference["texts"].tolist())
        np.testing.assert_allclose(found, reference["vectors"], atol=1e-5)


def test_a_vector_does_not_depend_on_the_other_texts(minilm):
    texts = ["a bridge", "", "one two three four five six seven eight nine ten eleven", "land"]
    together = bert.encode(minilm, texts)
    np.testing.assert_allclose(
        bert.encode(minilm, texts[::-1], batch_size=2)[::-1], together, atol=1e-6
    )
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_long_texts_are_cut(minilm):
    long, longer = bert.encode(minilm, ["word " * 6, "word " * 20], max_length=8)
    np.testing.assert_allclose(long, longer, atol=1e-6)


def test_an_empty_list_of_texts(minilm):
    assert bert.encode(minilm, []).shape == (0, 384)


def test_the_minilm_space_has_the_encoded_words(minilm):
    space = english.load("minilm", 2000, cache_dir())
    rows = [0, 7, 500, 1999]
    found = bert.encode(minilm, [space.words[row] for row in rows])
    np.testing.assert_allclose(found, space.vectors[rows], atol=1e-5)


def test_the_minilm_input_space_has_mean_word_piece_vectors(minilm):
    weights = safetensors.numpy.load(english.minilm_files(cache_dir())["model.safetensors"])
    table = weights["embeddings.word_embeddings.weight"]
    vocabulary = minilm.tokenizer.get_vocab()
    space = english.load("minilm_input", english.NUM_WORDS, cache_dir())
    row = space.words.index("netanyahu")
    pieces = [vocabulary["net"], vocabulary["##any"], vocabulary["##ahu"]]
    np.testing.assert_allclose(space.vectors[row], table[pieces].mean(0), atol=1e-6)
    np.testing.assert_array_equal(space.vectors[0], table[vocabulary["the"]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_hidden_layers": 7}, "model.safetensors has 6 layers"),
        ({"vocab_size": 99}, r"word_embeddings\.weight is not a finite array of shape \(99, 384\)"),
    ],
)
def test_a_checkpoint_with_another_config_is_a_user_error(change, message):
    files = english.minilm_files(cache_dir())
    config = json.dumps(json.loads(files["config.json"]) | change).encode()
    with pytest.raises(UserError, match=message):
        bert.load(files | {"config.json": config}, "minilm")


def test_minilm_has_mean_pooling_and_256_word_pieces(minilm):
    assert minilm[2:] == ("mean", 256)
    assert minilm.tokenizer.encode("a bridge").tokens == ["[CLS]", "a", "bridge", "[SEP]"]
