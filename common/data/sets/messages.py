"""10,188 messages of six programs in five languages, 7,800 of them in Italian too.

The languages are English, French, German, Spanish and Japanese. The catalogues of Gramps, pretix,
Weblate, Plone, Spyder and django-oscar are read, not installed. A message has three English words
or more, 15 to 300 characters and no place for a value, and differs from its translations; markup
and marks of keys (`_File`) are left out. Of messages that are equal in one of the languages,
whatever their case, the first is kept, so that no text has two right translations and none is in
two splits. They are in the order of the SHA-256 of the English text, so that the first n are a
random sample. Spyder has no Italian, pretix of half of its messages.
"""

import hashlib
import html
import re
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow_datasets as tfds
from jaxtyping import Int

from common.data.builders import TEXTS, PackageBuilder, Table, array_column, read_table
from common.data.packages import PACKAGES, Package, read_members
from common.progress import progress_bar

PROGRAMS = ("gramps", "pretix", "weblate", "plone", "spyder", "oscar")  # keys of PACKAGES
COMPLETE = ("fr", "de", "es", "ja")  # languages that all messages have
LANGUAGES = ("en", *COMPLETE, "it")
CATALOGUE = re.compile(r".*/(fr|de|es|ja|it)/LC_MESSAGES/\w+\.mo")
MARKUP = re.compile(r"<[^>]*>|`+|\*\*|\([_&]\w\)|[_&](?=\w)")
MIN_WORDS, MIN_CHARACTERS, MAX_CHARACTERS = 3, 15, 300


class Messages(NamedTuple):
    """Messages in English and in one language, and the program of each, an index of `PROGRAMS`."""

    english: list[str]
    texts: list[str]
    programs: Int[np.ndarray, " n"]


class ProgramMessages(PackageBuilder):
    """The messages; a text is empty where there is no translation into Italian."""

    VERSION = tfds.core.Version("1.0.0")

    def _source(self) -> tuple[Package, dict]:
        columns = dict.fromkeys(LANGUAGES, TEXTS)
        return PACKAGES[PROGRAMS[0]], columns | {"program": array_column((), np.int32)}

    def _table(self) -> Table:
        seen, rows = set(), {}
        for program in progress_bar(PROGRAMS, desc="reading messages", unit="program"):
            found = {language: {} for language in LANGUAGES[1:]}
            content = read_members(PACKAGES[program], self._cache, CATALOGUE.fullmatch)
            for name in sorted(content):
                language = found[name.split("/")[-3]]
                for english, text in translations(content[name]):
                    language.setdefault(english, text)
            for english in found["fr"]:
                texts = (english, *(found[language].get(english, "") for language in LANGUAGES[1:]))
                keys = {(i, text.casefold()) for i, text in enumerate(texts) if text}
                if all(texts[: len(COMPLETE) + 1]) and not keys & seen:
                    seen |= keys
                    rows[texts] = PROGRAMS.index(program)
        order = sorted(rows, key=lambda texts: hashlib.sha256(texts[0].encode()).digest())
        columns = dict(zip(LANGUAGES, map(list, zip(*order, strict=True)), strict=True))
        return columns | {"program": np.array([rows[texts] for texts in order], np.int32)}


def translations(catalogue: bytes) -> list[tuple[str, str]]:
    """The messages of a compiled catalogue of GNU gettext that are taken, and their translations.

    Those with a plural are left out, and what tells equal messages apart.
    """
    count, *places = struct.unpack_from("<3I", catalogue, 8)

    def texts(place):
        table = np.frombuffer(catalogue, "<u4", 2 * count, place).reshape(-1, 2)
        return [catalogue[start : start + size].decode() for size, start in table.tolist()]

    pairs = []
    for message, translation in zip(*map(texts, places), strict=True):
        english, text = _plain(message.split("\4")[-1]), _plain(translation)
        if (
            MIN_CHARACTERS <= len(english) <= MAX_CHARACTERS
            and len(english.split()) >= MIN_WORDS
            and text not in ("", english)
            and not re.search(r"[%{$\0]", english + text)
        ):
            pairs.append((english, text))
    return pairs


def _plain(text: str) -> str:
    text = re.sub(r"&#?\w+;", lambda entity: html.unescape(entity[0]), text)
    return " ".join(MARKUP.sub("", text).split())


def load(language: str, cache: Path) -> Messages:
    """Returns the messages that one of `LANGUAGES` has; raises as `builders.read_table`."""
    table = read_table(ProgramMessages(cache=cache), cache)
    rows = [row for row, text in enumerate(table[language]) if text]
    english, texts = ([table[name][row] for row in rows] for name in ("en", language))
    return Messages(english, texts, table["program"][rows])
