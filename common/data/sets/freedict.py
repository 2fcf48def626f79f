"""English words with their translations in FreeDict, those into Finnish from Wiktionary.

A dictionary is in dictd's format: one compressed text, and an index with a headword, an offset
and a length a line, both in bytes and in base 64. An entry is, for instance,

  dog //dɒɡ// <n>
  1. koira 2.
  animal
   3.
  male canine
  2. konna, lurjus
  morally reprehensible person

whose numbers without translations (2. and 3.) are further senses of the translations before them.
German translations have marks (`Hund <masc> [zool.]`), and nouns a capital, unlike in the lists of
frequent words.
"""

import base64
import gzip
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from common.data.packages import PACKAGES, read_member
from common.data.sets import word_frequency

FINNISH = "freedict"
LANGUAGES = {  # name -> the language in the package, in its files, and in lists of frequent words
    FINNISH: ("finnish", "fin", "fi"),
    "freedict_german": ("german", "deu", "de"),
    "freedict_italian": ("italian", "ita", "it"),
    "freedict_spanish": ("spanish", "spa", "es"),
}
MEMBER = "usr/share/dictd/freedict-eng-{}"
HEADWORD = re.compile(r"(.+?)(?: /.*/)?(?: <(\w+)>)?")  # pronunciations and the part of speech
NUMBERED = re.compile(r"\d+\. (.+)")  # translations of a word with several senses
FURTHER_SENSE = re.compile(r" \d+\.")
MARK = re.compile(r" +(?:<[^>]*>|\[[^]]*\])")
NO_WORDS = ("prefix", "suffix", "symbol")

WordPairs = list[tuple[str, str]]


def load(name: str, cache: Path) -> WordPairs:
    """Returns (English word, its translation) of one of `LANGUAGES`, by English word.

    A translation of more senses comes first, among equals the more frequent word. Both words are
    alphabetic: phrases, affixes and words with hyphens are left out. Raises as `fetch`.
    """
    language, code, frequency = LANGUAGES[name]
    package, member = PACKAGES[f"freedict_{language}"], MEMBER.format(code)
    text = gzip.decompress(read_member(package, cache, f"{member}.dict.dz"))
    index = read_member(package, cache, f"{member}.index").decode()
    senses: Counter[tuple[str, str]] = Counter()
    for entry in entries(text, index):
        senses.update(read_entry(without_marks(entry) if code == "deu" else entry))
    frequent = word_frequency.most_frequent(frequency, cache)
    rank = {word: rank for rank, word in enumerate(frequent)}
    words = [pair for pair in senses if all(map(str.isalpha, pair))]
    return sorted(
        words, key=lambda pair: (pair[0], -senses[pair], rank.get(pair[1], len(rank)), pair[1])
    )


def without_marks(entry: str) -> str:
    """An entry whose translations have no marks and no capitals."""
    head, *lines = entry.split("\n")
    return "\n".join([head, *(MARK.sub("", line).lower() for line in lines)])


def entries(text: bytes, index: str) -> Iterator[str]:
    """Yields the entries of single words by the index of a text; ValueError if it is damaged."""
    for line in index.removesuffix("\n").split("\n"):
        headword, *numbers = line.split("\t")
        if headword.isalpha():
            offset, length = (  # A is the zero of base 64, of which four digits are decoded at once
                int.from_bytes(base64.b64decode(number.rjust(8, "A"), validate=True))
                for number in numbers
            )
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
