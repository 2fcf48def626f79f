import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from common.data.packages import cache_dir
from common.encoders import bert
from common.encoders import texts as text_encoders
from common.spaces import paired_spaces, sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("He said \"stop!\" (loudly.) 'Why?' she asked", 4),
        ("Mr. Blair met Dr. No vs. J. K. Rowling of the U.S. team. They left.", 2),
        ("wait... what?!? no.5 costs 3.50, e.g. at imdb.com. the end .", 4),
        ("a headline\nand a  paragraph .\n\n it goes on", 3),
        ("\n \n", []),
        ("", []),
    ],
)
def test_a_text_is_split_where_sentences_end(text, expected):
    parts = sentences.split(text)
    assert parts == expected if isinstance(expected, list) else len(parts) == expected


ALPHABET = st.sampled_from(["Mr", "A", "a", "é", "5", *" .!?…\"'”)(\n\t\u2028,-"])


@hypothesis.given(st.lists(ALPHABET).map("".join))
def test_sentences_are_the_text_without_white_space(text):
    parts = sentences.split(text)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(sentence and sentence == " ".join(sentence.split()) for sentence in parts)


@hypothesis.given(st.lists(ALPHABET).map("".join), st.lists(ALPHABET).map("".join))
def test_lines_are_split_one_by_one(first, second):
    both = sentences.split(f"{first}\n{second}")
    assert both == sentences.split(first) + sentences.split(second)


@pytest.mark.network
@pytest.mark.slow
def test_spaces_are_of_the_same_sentences_and_independent_encoders(monkeypatch):
    monkeypatch.setattr(text_encoders, "SHARD_TEXTS", 64)
    monkeypatch.setattr(sentences, "FIRST_TEXTS", 32)
    names = ("minilm_sentences", "wordllama_sentences")
    pair = paired_spaces.load(*names, num_words=90, drop_first=10, cache=cache_dir())
    texts = sentences.load_texts(cache_dir()).texts
    assert pair.names == texts[10:100]
    assert (pair.source.shape, pair.target.shape) == ((90, 384), (90, 256))
    options = {"num_words": None, "cache": cache_dir(), "max_rows": 64}
    assert paired_spaces.load(*names, **options).names == texts[:64]
    np.testing.assert_allclose(np.linalg.norm(pair.source, axis=1), 1, atol=1e-5)
    for encoder, vectors in (("minilm", pair.source), ("wordllama", pair.target)):
        single = text_encoders.encode(encoder, texts[50:51], cache_dir(), max_pieces=64)
        np.testing.assert_allclose(single[0], vectors[40], atol=1e-5)


def test_fewer_sentences_cost_no_more_than_their_shards(tmp_path, monkeypatch):
    """These shards then serve more sentences."""
    texts = [f"text number {i}" for i in range(11)]
    monkeypatch.setattr(sentences, "load_texts", lambda cache: sentences.Sentences(texts, None))
    monkeypatch.setattr(text_encoders, "SHARD_TEXTS", 4)
    monkeypatch.setattr(sentences, "FIRST_TEXTS", 2)
    monkeypatch.setattr(bert, "load", lambda files, name: None)
    monkeypatch.setattr(text_encoders, "read_files", lambda name, cache: {})
    encoded = []

    def encode(encoder, shard, *, max_length, bar):
        encoded.append(shard)
        return np.array([[len(text), int(text.split()[-1])] for text in shard], np.float32)

    monkeypatch.setattr(bert, "encode", encode)
    shards = {1: [texts[:2]], 3: [texts[:4]], 5: [texts[4:8]], 100: [texts[8:]], None: []}
    for max_rows, expected in shards.items():
        encoded.clear()
        space = sentences.load("minilm_sentences", tmp_path, max_rows)
        assert encoded == expected and space.words == texts[:max_rows]
        assert space.vectors[:, 1].tolist() == list(range(len(space.words)))
