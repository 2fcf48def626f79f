"""131,072 English sentences of reviews and news, in five spaces of sentence vectors.

`minilm_sentences` (384 numbers) is of the encoder `minilm` of common/encoders/texts.py, and so on:
`mpnet_sentences` (768), `wordllama_sentences` (256), `use_sentences` (512) and `e5_sentences`
(384). All cut a sentence after 64 word pieces, which happens to 1 in 1,500.

The sentences are those of IMDB, Rotten Tomatoes and BBC news that have 4 to 40 words. Of sentences
that differ in case only, which MiniLM cannot tell apart, the first is kept. They are in the order
of their SHA-256, so that the first n are a random sample. Row i is the same sentence in all
spaces.
"""

import hashlib
import itertools
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow_datasets as tfds
from jaxtyping import Float, Int

from common.data.builders import TEXTS, PackageBuilder, Table, array_column, read_table
from common.data.packages import PACKAGES, Package
from common.data.sets import bbc, reviews
from common.data.space import Space
from common.encoders import texts as text_encoders
from common.errors import UserError, check_choice
from common.progress import progress_bar

SPACES = {
    "minilm_sentences": "minilm",
    "mpnet_sentences": "mpnet",
    "wordllama_sentences": "wordllama",
    "use_sentences": "use",
    "e5_sentences": "e5",
}  # name -> encoder
DATASETS = (*reviews.SOURCES, "bbc")
NUM_SENTENCES = 1 << 17  # of 326,000: MiniLM encodes 100 a second on one core, MPNet 18
FIRST_TEXTS = 512  # see `_encode`
MIN_WORDS, MAX_WORDS = 4, 40
MAX_PIECES = 64  # word pieces of a sentence that are encoded, special ones included
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
# A full stop after one of these, or after a single capital letter, does not end a sentence.
ABBREVIATIONS = ("Mr", "Mrs", "Ms", "Dr", "St", "Prof", "Jr", "Sr", "vs", "e.g", "i.e")
NO_END = "".join(rf"(?<!\b{re.escape(word)}\.)" for word in ABBREVIATIONS)
END = re.compile(rf"""[.!?…]{NO_END}(?<!\b[A-Z]\.)[.!?…]*+["'”’)\]]*+(?=\s)""")


class Sentences(NamedTuple):
    """Sentences, and indices of `DATASETS`: where each was found first."""

    texts: list[str]
    datasets: Int[np.ndarray, " n"]


class ReviewAndNewsSentences(PackageBuilder):
    """The sentences and their sets."""

    VERSION = tfds.core.Version("1.0.0")

    def _source(self) -> tuple[Package, dict]:
        return PACKAGES["reviews"], {"sentence": TEXTS, "dataset": array_column((), np.int32)}

    def _table(self) -> Table:
        articles = bbc.load(self._cache)
        documents = [reviews.load(name, self._cache).texts for name in reviews.SOURCES]
        documents.append([*articles.headlines, *articles.bodies])
        first: dict[str, tuple[str, int]] = {}
        for dataset, texts in enumerate(documents):
            bar = progress_bar(
                texts, desc=f"splitting {DATASETS[dataset]} into sentences", unit="text"
            )
            for sentence in (sentence for text in bar for sentence in of_length(text)):
                first.setdefault(sentence.casefold(), (sentence, dataset))
        order = sorted(first, key=lambda text: hashlib.sha256(text.encode()).digest())
        sentences, datasets = zip(*(first[text] for text in order[:NUM_SENTENCES]), strict=True)
        return {"sentence": list(sentences), "dataset": np.array(datasets, np.int32)}


def of_length(text: str) -> list[str]:
    """The sentences of a text that have MIN_WORDS to MAX_WORDS words."""
    return [x for x in split(text) if MIN_WORDS <= len(WORD.findall(x)) <= MAX_WORDS]


def split(text: str) -> list[str]:
    """Splits a text into sentences, none empty, without runs of white space.

    A sentence ends with its line, and where white space follows `.`, `!`, `?` or `…` with its
    closing quotes and brackets, but for `ABBREVIATIONS` and single capital letters.
    """
    sentences = []
    for line in text.splitlines():
        ends = [0, *(match.end() for match in END.finditer(line)), len(line)]
        sentences += [" ".join(line[i:j].split()) for i, j in itertools.pairwise(ends)]
    return [sentence for sentence in sentences if sentence]


def load_texts(cache: Path) -> Sentences:
    """Returns the sentences, built on first use; raises as `builders.read_table`."""
    table = read_table(ReviewAndNewsSentences(cache=cache), cache)
    return Sentences(table["sentence"], table["dataset"])


def load(name: str, cache: Path, max_rows: int | None = None) -> Space:
    """Returns the first sentences, or all, in one space, encoded no further than asked for."""
    check_choice("space of sentences", name, SPACES)
    texts = load_texts(cache).texts
    num_rows = len(texts[:max_rows])
    return Space(texts[:num_rows], _encode(SPACES[name], texts, num_rows, cache))


def of_reviews(
    encoder: str, num_sentences: int, cache: Path, smoothing: float
) -> Float[np.ndarray, "n d"]:
    """An encoder's vectors of the first sentences of reviews; UserError: there are fewer."""
    texts, datasets = load_texts(cache)
    rows = np.flatnonzero(datasets != DATASETS.index("bbc"))
    if num_sentences > len(rows):
        raise UserError(
            f"{num_sentences:,} sentences of reviews are too many: there are {len(rows):,}."
        )
    chosen = rows[:num_sentences]
    return _encode(encoder, texts, int(chosen[-1]) + 1, cache, smoothing=smoothing)[chosen]


def _encode(
    encoder: str, texts: list[str], num_rows: int, cache: Path, **options
) -> Float[np.ndarray, "n d"]:
    """The first sentences; whole shards, so that those of a smaller number serve a larger one.

    Only FIRST_TEXTS are encoded where they are enough, as in a quick run.
    """
    rounded = -(-num_rows // text_encoders.SHARD_TEXTS) * text_encoders.SHARD_TEXTS
    rounded = FIRST_TEXTS if num_rows <= FIRST_TEXTS else rounded
    options |= {"max_pieces": MAX_PIECES}
    return text_encoders.encode(encoder, texts[:rounded], cache, **options)[:num_rows]
