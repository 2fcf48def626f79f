import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from flax import nnx

from common.data.packages import cache_dir
from common.data.sets import word_vectors
from common.encoders import bert, minilm
from common.encoders import texts as text_encoders
from common.errors import UserError

FIXTURES = Path(__file__).parents[2] / "fixtures"
SETTINGS = {"max_pieces": 16, "smoothing": 1e-3}


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("name", ["glove", "word2vec"])
def test_averages_are_weighted_means_of_words(bare, name):
    vocabulary, table = word_vectors.load("word2vec", cache_dir())
    if name == "glove":
        vocabulary, table = word_vectors.whole_glove(cache_dir())
    harmonic = np.log(len(table)) + 0.5772157  # the sum of 1 / rank over all words

    def weighted(word):
        row = vocabulary.index(word)
        return table[row] * 1e-3 / (1e-3 + 1 / ((row + 1) * harmonic))

    texts = ["Film, film & Music-qqzxq", "qqzxq", "ß"]
    vectors = text_encoders.encode(name, texts, bare, **SETTINGS)
    expected = (2 * weighted("film") + weighted("music")) / 3
    np.testing.assert_allclose(vectors[0], expected, rtol=1e-4, atol=1e-6)
    assert np.linalg.norm(vectors[1]) > 0.01  # the mean vector, as its word is unknown
    np.testing.assert_array_equal(vectors[1], vectors[2])


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("name", ["minilm_input", "glove", "wordllama"])
def test_averages_are_of_texts_cut_after_max_pieces(bare, name):
    short = "a film about the sea and the sun and the sand in the"  # 13 pieces, and 2 special ones
    texts = [f"{short} wind {rest}" for rest in ("of spring", "music " * 30)]
    first, second = text_encoders.encode(name, texts, bare, **SETTINGS)
    np.testing.assert_allclose(first, second, atol=1e-6)
    if name == "minilm_input":
        first, second = text_encoders.encode(name, texts, bare, max_pieces=32, smoothing=1e-3)
        assert not np.allclose(first, second, atol=1e-6)


@pytest.mark.network
@pytest.mark.slow
def test_minilm_input_is_the_weighted_mean_of_its_pieces(bare):
    network, tokenizer, *_ = minilm.load_encoder(cache_dir())
    table = np.asarray(network.words.embedding[...])
    film, sea = (tokenizer.token_to_id(word) for word in ("film", "sea"))
    vectors = text_encoders.encode("minilm_input", ["film sea film", "sea"], bare, **SETTINGS)
    half = 1e-3 / (1e-3 + 0.5)  # each is half of the four pieces there are
    expected = half * (2 * table[film] + table[sea]) / 3
    np.testing.assert_allclose(vectors, [expected, half * table[sea]], rtol=1e-4, atol=1e-8)


@pytest.mark.network
def test_wordllama_agrees_with_the_stored_reference(bare):
    with np.load(FIXTURES / "wordllama_reference.npz") as reference:
        vectors = text_encoders.encode(
            "wordllama", reference["texts"].tolist(), bare, max_pieces=64
        )
        np.testing.assert_allclose(vectors, reference["vectors"], rtol=1e-4, atol=1e-5)


def test_tokens_are_those_of_glove():
    assert text_encoders.TOKEN.findall("don't; the film's 2nd act!") == [
        *("do", "n't", "the", "film", "'s", "2", "nd", "act", "!")
    ]


def test_encodings_are_cached_by_all_that_determines_them(tmp_path, monkeypatch):
    calls = []

    def lengths(texts, cache, max_pieces, smoothing):
        calls.append(texts)
        return np.array([[len(text), smoothing] for text in texts], np.float32)

    monkeypatch.setattr(text_encoders, "AVERAGES", {"glove": lengths, "minilm_input": lengths})
    texts = ["one film", "two films"]
    for name, changed, count in (
        ("glove", {}, 1),
        ("glove", {}, 1),
        ("glove", {"max_pieces": 17}, 2),
        ("glove", {"smoothing": 1e-2}, 3),
        ("minilm_input", {"smoothing": 1e-2}, 4),
    ):
        vectors = text_encoders.encode(name, texts, tmp_path, **SETTINGS | changed)
        assert vectors[:, 0].tolist() == [8, 9] and len(calls) == count
    text_encoders.encode("glove", texts[::-1], tmp_path, **SETTINGS)
    assert calls[4:] == [texts[::-1]]


def reconfigure(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def add_settings(folder, modules=(), pooling=None, transformer=None, tokenizer=None):
    """Writes the files that sentence-transformers adds to a model."""
    (folder / "1_Pooling").mkdir(exist_ok=True)
    values = modules, pooling or {}, transformer or {}, tokenizer or {}
    for part, value in zip(bert.OPTIONAL_FILES, values, strict=True):
        (folder / part).write_text(json.dumps(value))


def set_weight(folder, value):
    """Replaces a number in one of the model's arrays."""
    path = folder / "model.safetensors"
    weights = {k: v.copy() for k, v in safetensors.numpy.load(path.read_bytes()).items()}
    weights["embeddings.LayerNorm.bias"][0] = value
    safetensors.numpy.save_file(weights, path)


def set_token_id(folder, word, number):
    """Replaces the id of a word in the tokenizer."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"][word] = number
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def test_a_folder_is_a_sentence_encoder(folder, tmp_path):
    texts = ["land", "sea", "bridge land sea", "land " * 30]
    vectors = text_encoders.encode(str(folder), texts, tmp_path, **SETTINGS)
    encoder = bert.load(text_encoders.read_files(str(folder), tmp_path), "tiny")
    np.testing.assert_allclose(vectors, bert.encode(encoder, texts, max_length=16), atol=1e-6)
    reconfigure(folder, layer_norm_eps=1.0)
    assert not np.allclose(text_encoders.encode(str(folder), texts, tmp_path, **SETTINGS), vectors)


def test_an_mpnet_in_a_folder_agrees_with_the_published_implementation(tmp_path):
    """Distances up to 299 fall into every bucket; the last text is cut after 300 word pieces."""
    folder = FIXTURES / "tiny_mpnet"
    encoder = bert.load(text_encoders.read_files(str(folder), tmp_path), "tiny")
    assert encoder[2:] == ("mean", 300)
    with np.load(folder / "reference.npz") as reference:
        texts, expected = reference["texts"].tolist(), reference["vectors"]
    np.testing.assert_allclose(bert.encode(encoder, texts), expected, atol=1e-6)
    with pytest.raises(UserError, match=r"Texts of 301 word pieces: the encoder takes 3 to 300"):
        bert.encode(encoder, texts, max_length=301)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "nor a folder with a readable token"),
        (lambda folder: (folder / "config.json").write_text("{"), "has to be a BERT"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x"), "has to be a BERT"),
        (lambda folder: reconfigure(folder, vocab_size=5), "word_embeddings.weight is not a"),
        (lambda folder: reconfigure(folder, num_hidden_layers=10**9), "has 1 layers, config.json"),
        (lambda folder: reconfigure(folder, num_attention_heads=3), "has to be a BERT"),
        (lambda folder: reconfigure(folder, num_attention_heads=-2), "has to be a BERT"),
        (lambda folder: reconfigure(folder, type_vocab_size="2"), "has to be a BERT"),
        (lambda folder: set_weight(folder, np.nan), "is not a finite array"),
        (lambda folder: set_token_id(folder, "land", 7), "a token id 7, .* 4 token vectors"),
        (lambda folder: set_token_id(folder, "land", 1 << 31), "a token id 2147483648, "),
        (lambda folder: reconfigure(folder, model_type="roberta"), "only .* are implemented"),
        (lambda folder: reconfigure(folder, model_type="mpnet"), "encoder.layer.0.attention"),
        (lambda folder: reconfigure(folder, relative_attention_num_buckets=64), "only .* are impl"),
        (lambda folder: reconfigure(folder, hidden_act="relu"), "only .*'gelu'.* are implemented"),
        (lambda folder: add_settings(folder, pooling={"pooling_mode": "max"}), "only .* mean and"),
        (lambda folder: add_settings(folder, pooling={"pooling_mode": ["cls", "mean"]}), "only"),
        (lambda folder: add_settings(folder, modules=[{"type": "a.b.Dense"}]), "only .*Normalize"),
        (lambda folder: add_settings(folder, modules=[{"kind": "Dense"}]), "has to be a BERT"),
    ],
)
def test_an_unreadable_folder_is_a_user_error(folder, tmp_path, change, message):
    change(folder)
    with pytest.raises(UserError, match=message):
        text_encoders.encode(str(folder), ["land"], tmp_path, **SETTINGS)


def test_pooling_and_maximum_length_are_those_of_the_folder(folder, tmp_path):
    def load():
        return bert.load(text_encoders.read_files(str(folder), tmp_path), "it")

    assert load()[2:] == ("mean", 20)  # all 20 positions
    modules = [{"type": f"sentence_transformers.models.{name}"} for name in bert.MODULES]
    mean, cls = (
        {"pooling_mode_cls_token": first, "pooling_mode_mean_tokens": not first}
        for first in (False, True)
    )
    for pooling, transformer, tokenizer, expected in (
        (mean, {"max_seq_length": 30}, {}, ("mean", 20)),
        (cls, {"max_seq_length": 3}, {}, ("cls", 3)),
        (cls, {"max_seq_length": 3}, {"model_max_length": 5}, ("cls", 3)),
        (cls, {"transformer_task": "any"}, {"model_max_length": 5}, ("cls", 5)),
        ({"pooling_mode": "cls"}, {}, {"model_max_length": 10**30}, ("cls", 20)),
    ):
        add_settings(folder, modules, pooling, transformer, tokenizer)
        assert load()[2:] == expected
    for length in (-1, 2):
        add_settings(folder, modules, mean, {"max_seq_length": length}, {})
        with pytest.raises(UserError, match=f"it takes texts of {length} word pieces"):
            load()
    add_settings(folder, modules, cls, {}, {})
    encoder, texts = load(), ["land", "bridge land sea sea"]
    ids = np.array([encoder.tokenizer.encode(texts[1]).ids])
    alone = ids, np.zeros_like(ids), np.arange(ids.shape[1])[None]
    first = np.asarray(nnx.jit(encoder.network)(*alone))[0, 0]
    vectors = text_encoders.encode(str(folder), texts, tmp_path, **SETTINGS)
    np.testing.assert_allclose(vectors[1], first / np.linalg.norm(first), atol=1e-6)
