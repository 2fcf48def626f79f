import hashlib

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from common.data.packages import cache_dir
from common.encoders import bert
from common.encoders import texts as text_encoders
from common.errors import UserError
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
def test_the_set_is_built_from_the_packages_alone(packages_only):
    texts, datasets = sentences.load_texts(packages_only)
    assert len(texts) == len({text.casefold() for text in texts}) == sentences.NUM_SENTENCES
    assert np.bincount(datasets).tolist() == [111_382, 3_824, 15_866]  # IMDB, Rotten Tomatoes, BBC
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    assert digest == "20bf2f3cce9a80a327aafb61972e8693114d187900113de11374e8ab949023fd"
    assert all("<br" not in text and text == " ".join(text.split()) for text in texts)
    assert {len(sentences.WORD.findall(text)) for text in texts} == {*range(4, 41)}
    # The order is random: the share of a set is that of all, within four standard deviations.
    for dataset, share in enumerate(np.bincount(datasets) / len(texts)):
        deviation = np.sqrt(share * (1 - share) / 10_000)
        assert abs((datasets[:10_000] == dataset).mean() - share) < 4 * deviation


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


def test_a_killed_run_resumes_to_the_same_vectors(tmp_path, monkeypatch):
    """Also, fewer sentences cost no more than their shards, which then serve more sentences."""
    texts = [f"text number {i}" for i in range(11)]
    monkeypatch.setattr(sentences, "load_texts", lambda cache: sentences.Sentences(texts, None))
    monkeypatch.setattr(text_encoders, "SHARD_TEXTS", 4)
    monkeypatch.setattr(sentences, "FIRST_TEXTS", 2)
    monkeypatch.setattr(bert, "load", lambda files, name: None)
    monkeypatch.setattr(text_encoders, "read_files", lambda name, cache: {})
    encoded = []

    def encode(encoder, shard, *, max_length, bar):
        if len(encoded) == stop:
            raise KeyboardInterrupt
        encoded.append(shard)
        bar.update(len(shard))
        return np.array([[len(text), int(text.split()[-1])] for text in shard], np.float32)

    monkeypatch.setattr(bert, "encode", encode)

    def load(folder, max_rows=None):
        encoded.clear()
        return sentences.load("minilm_sentences", tmp_path / folder, max_rows)

    stop = None
    whole = load("whole")
    assert encoded == [texts[:4], texts[4:8], texts[8:]] and whole.words == texts
    stop = 2
    with pytest.raises(KeyboardInterrupt):
        load("killed")
    stop = None
    np.testing.assert_array_equal(load("killed").vectors, whole.vectors)
    assert encoded == [texts[8:]]
    assert load("few", 1).words == texts[:1] and encoded == [texts[:2]]
    assert load("few", 3).words == texts[:3] and encoded == [texts[:4]]
    np.testing.assert_array_equal(load("few", 5).vectors, whole.vectors[:5])
    assert encoded == [texts[4:8]]
    assert load("few", 100).words == texts and encoded == [texts[8:]]


def test_an_unknown_name_is_a_user_error():
    with pytest.raises(UserError, match="'sentences': choose one of minilm_sentences, mpnet_s"):
        sentences.load("sentences", cache_dir())
