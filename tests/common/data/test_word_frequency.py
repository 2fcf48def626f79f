import hashlib

import msgpack
import pytest

from common.data.packages import cache_dir
from common.data.sets import word_frequency
from common.errors import UserError

KNOWN = {  # number of words, first words, start of the SHA-256 of all words, one a line
    "en": (321_180, ["the", "to", "and"], "888e21176dd8a03a"),
    "fi": (734_205, ["ja", "on", "ei"], "154acd99cc519ee1"),
}


@pytest.mark.network
@pytest.mark.parametrize("language", KNOWN)
def test_words_are_in_the_order_of_frequency(language):
    count, first, checksum = KNOWN[language]
    words = word_frequency.most_frequent(language, cache_dir())
    assert len(words) == len(set(words)) == count and words[: len(first)] == first
    assert hashlib.sha256("\n".join(words).encode()).hexdigest()[:16] == checksum


def test_lists_of_equal_frequency_follow_each_other():
    content = msgpack.packb([word_frequency.HEADER, [], ["the"], [], ["of", "to"]])
    assert word_frequency.read_cbpack(content) == ["the", "of", "to"]
    with pytest.raises(ValueError, match="not the header"):
        word_frequency.read_cbpack(msgpack.packb([{"format": "cB", "version": 2}, ["the"]]))


def test_an_unknown_language_is_a_user_error(tmp_path):
    with pytest.raises(
        UserError, match=r"no language of word frequencies 'xx': choose one of en, fi\."
    ):
        word_frequency.most_frequent("xx", tmp_path)


@pytest.mark.parametrize(
    ("token", "expected"),
    [("cat", True), ("at", False), ("Cat", False), ("caté", False), ("it's", False), ("", False)],
)
def test_a_word_has_three_lower_case_ascii_letters_or_more(token, expected):
    assert word_frequency.is_word(token) is expected
