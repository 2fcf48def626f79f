"""Words of a language, most frequent first, by wordfreq (Speer 2022).

wordfreq merges counts of Wikipedia, subtitles, news, books, web pages and social media, all in
lower case. Its lists are files in the format cBpack: a header, then for n = 0, 1, 2, ... a list,
in alphabetic order, of the words whose frequency rounds to 10^(-n/100).
"""

import gzip
from pathlib import Path

import msgpack

from common.data.packages import PACKAGES, read_member
from common.errors import check_choice

LANGUAGES = ("en", "fi", "de", "it", "es")
HEADER = {"format": "cB", "version": 1}


def most_frequent(language: str, cache: Path) -> list[str]:
    """The words of one of `LANGUAGES` of a frequency of 10^-8 and more; else a UserError."""
    check_choice("language of word frequencies", language, LANGUAGES)
    packed = read_member(PACKAGES["wordfreq"], cache, f"wordfreq/data/large_{language}.msgpack.gz")
    return read_cbpack(gzip.decompress(packed))


def is_word(token: str) -> bool:
    """Whether a token consists of three lower-case ASCII letters or more."""
    return len(token) >= 3 and token.isascii() and token.isalpha() and token.islower()


def read_cbpack(content: bytes) -> list[str]:
    """Returns the words of a cBpack file in its order; ValueError: another format."""
    header, *lists = msgpack.unpackb(content)
    if header != HEADER:
        raise ValueError(f"{header} is not the header {HEADER}")
    return [word for words in lists for word in words]
