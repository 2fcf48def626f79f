"""The encoders of many languages, and the texts in languages."""

import gettext
import io
import struct

import numpy as np
import pytest

from common.data.packages import cache_dir
from common.data.sets import messages
from common.encoders import bert
from common.encoders import texts as text_encoders
from common.spaces import labelled_vectors, paired_spaces
from tests.common.test_bert import FIXTURES

pytestmark = pytest.mark.network
# E5's package rounds what enters each product to 8 bits: cosines of .9998 and more.
TOLERANCES = {"use": (1e-5, 1e-6), "e5": (1e-2, 3e-4)}  # of a number, and of a cosine


@pytest.fixture(scope="module", params=TOLERANCES)
def named(request):
    files = text_encoders.read_files(request.param, cache_dir())
    return request.param, text_encoders.loader(request.param)(files, request.param)


@pytest.mark.slow
def test_vectors_agree_with_the_packages_code_in_six_languages(named):
    """One text begins with "query: ", which E5's code was told instead; others are passages."""
    name, encoder = named
    same = [encoder.tokenizer.encode(text).ids for text in ("land", "passage: land")]
    assert (same[0] == same[1]) == (name == "e5")
    assert text_encoders.as_query(name, "a") == {"e5": "query: a"}.get(name, "a")
    with np.load(FIXTURES / "multilingual_reference.npz") as reference:
        vectors = bert.encode(encoder, reference["texts"].tolist())
        expected = reference[name]
    number, cosine = TOLERANCES[name]
    np.testing.assert_allclose(vectors, expected, atol=number)
    np.testing.assert_allclose(np.sum(vectors * expected, axis=1), 1, atol=cosine + 2e-5)


@pytest.mark.slow
def test_a_vector_does_not_depend_on_the_texts_that_share_its_row(named):
    """Neither on those before and after it, nor on itself where it fills a row of 64 tokens."""
    _, encoder = named
    words = "land sea bridge " * 60
    full = next(
        text
        for length in range(len(words))
        if len(encoder.tokenizer.encode(text := words[:length]).ids) == 64
    )
    texts = ["a bridge", full, "sea", "one two three four five six", words, "land"]
    together = bert.encode(encoder, texts)
    alone = np.concatenate([bert.encode(encoder, [text]) for text in texts])
    np.testing.assert_allclose(alone, together, atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def catalogue(entries):
    """A compiled catalogue, which Python's own reader takes."""
    places, texts = [], b""
    for column in (list(entries), list(entries.values())):
        for text in map(str.encode, column):
            places += [len(text), 28 + 16 * len(entries) + len(texts)]
            texts += text + b"\0"
    head = 0x950412DE, 0, len(entries), 28, 28 + 8 * len(entries), 0, 0
    content = struct.pack(f"<{7 + len(places)}I", *head, *places) + texts
    assert gettext.GNUTranslations(io.BytesIO(content)).gettext("Only two") == "Nur zwei"
    return content


def test_translations_are_read_from_a_compiled_catalogue():
    entries = {
        "": "Content-Type: text/plain; charset=UTF-8",
        "menu\4_Save the <b>whole</b> tree": "Den &ganzen Stammbaum &quot;speichern&quot;(_S)",
        "Open the file": "Open the file",  # not translated
        "Delete %d of them": "%d davon löschen",
        "Two words here ...": "",
        "Only two": "Nur zwei",
        "One file of many\0Files of many": "Eine Datei\0Dateien",
    }
    taken = [("Save the whole tree", 'Den ganzen Stammbaum "speichern"')]
    assert messages.translations(catalogue(entries)) == taken


@pytest.mark.slow
def test_no_message_has_two_right_translations():
    english = messages.load("en", cache_dir())
    assert len(english.texts) == 10_188
    for language in messages.LANGUAGES:
        found = messages.load(language, cache_dir())
        assert len({text.casefold() for text in found.texts}) == len(found.texts) >= 7_800
        assert set(found.english) <= set(english.texts)
        assert language != "en" or found.english == found.texts


@pytest.mark.slow
@pytest.mark.parametrize("language", ["ja", "it"])
def test_rows_of_two_languages_are_paired_by_their_english_message(language, monkeypatch):
    def lengths(encoder, texts, cache, *, max_pieces):
        return np.array([[len(text), 1] for text in texts], np.float32)

    monkeypatch.setattr(text_encoders, "encode", lengths)
    names = "minilm_messages_en", f"use_messages_{language}"
    pair = paired_spaces.load(*names, num_words=500, cache=cache_dir())
    of_english = messages.load(language, cache_dir())
    text_of = dict(zip(of_english.english, of_english.texts, strict=True))
    assert pair.source[:, 0].tolist() == [len(name) for name in pair.names]
    assert pair.target[:, 0].tolist() == [len(text_of[name]) for name in pair.names]
    assert pair.ranks is None and len(pair.names) == 500

    sizes = {"num_train": 300, "num_test": 100, "num_unlabelled": 200}
    options = {"texts": "messages", "max_pieces": 64, "smoothing": 1e-3, "cache": cache_dir()}
    labelled = labelled_vectors.load(*names[::-1], **sizes, **options)
    english = messages.load("en", cache_dir())
    program_of = dict(zip(english.english, english.programs.tolist(), strict=True))
    names = paired_spaces.load(*names[::-1], num_words=600, cache=cache_dir()).names
    found = [*labelled.target.train_labels, *labelled.target.test_labels]
    assert [labelled.classes[label] for label in found] == [program_of[x] for x in names[:400]]
    assert labelled.target.unlabelled is not None
    assert labelled.target.unlabelled[:, 0].tolist() == [len(name) for name in names[400:]]
    of_source = [*labelled.source.train_labels, *labelled.source.test_labels]
    assert not labelled.ordered and found == of_source
