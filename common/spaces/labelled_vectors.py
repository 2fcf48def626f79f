"""Labelled texts encoded by two encoders, from encoders by name or from files by path.

A file is an `.npz` with the arrays `train` [n, d], `test` [m, d], `train_labels` [n] and
`test_labels` [m]. Row i of both files is the same text, or else both files have an array
`anchors` [k, d] whose row i is the same text in both, the known pairs first.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from common.data.readers.vector_files import as_vectors, check_rows
from common.data.sets import bbc, reviews
from common.data.sets.reviews import LabelledTexts
from common.encoders import texts as text_encoders
from common.errors import UserError, check_choice, check_count
from common.files import read_npz
from common.spaces import sentences

NEWS = "bbc"
STARS = "imdb_stars"


class LabelledVectors(NamedTuple):
    """One encoder's vectors of training and test texts.

    Attributes:
      train: vectors of the training texts.
      test: vectors of the test texts.
      train_labels: class index of each training text.
      test_labels: class index of each test text.
      anchors: vectors of the given anchors, or None if row i of both encoders is the same text.
      unlabelled: vectors of texts outside the task, row i of both encoders the same text; or None.
    """

    train: Float[np.ndarray, "n d"]
    test: Float[np.ndarray, "m d"]
    train_labels: Int[np.ndarray, " n"]
    test_labels: Int[np.ndarray, " m"]
    anchors: Float[np.ndarray, "k d"] | None = None
    unlabelled: Float[np.ndarray, "u d"] | None = None


class LabelledPair(NamedTuple):
    """Both encoders' vectors.

    Attributes:
      source: of one encoder.
      target: of the other.
      classes: the sorted labels, to which class indices refer.
      ordered: whether differences of class indices mean something; taken for granted in files.
    """

    source: LabelledVectors
    target: LabelledVectors
    classes: list
    ordered: bool


def load(
    source: str,
    target: str,
    *,
    texts: str,
    num_train: int,
    num_test: int,
    num_unlabelled: int = 0,
    max_pieces: int,
    smoothing: float,
    cache: Path,
) -> LabelledPair:
    """Reads or encodes the texts of both encoders.

    Args:
      source: name of an encoder (`common/encoders/texts.py`) or path of an .npz.
      target: as `source`.
      texts: name of the set of texts for encoders by name: 'bbc', five classes of news, headline
        and body; one of `common/data/sets/reviews.py`, two classes; or 'imdb_stars', the 2,004
        reviews of IMDB whose writers give marks out of ten, five classes.
      num_train: number of training texts of that set, the same random ones in every run.
      num_test: number of test texts of that set.
      num_unlabelled: number of sentences of reviews that encoders by name encode as well.
      max_pieces: see `text_encoders.encode`.
      smoothing: see `text_encoders.encode`.
      cache: the cache directory.

    Raises:
      UserError: an unknown encoder, a file that cannot be read or lacks an array, arrays of other
        shapes or with invalid rows, or labels and rows that differ between source and target.
    """
    pair = []
    for name in (source, target):
        if name in text_encoders.ENCODERS:
            data = _texts(texts, cache)
            if num_train + num_test > len(data.texts):
                raise UserError(
                    f"num_train={num_train} and num_test={num_test} are too many: '{texts}' has "
                    f"{len(data.texts)} texts."
                )
            rows = np.random.default_rng(0).permutation(len(data.texts))[: num_train + num_test]
            chosen = [data.texts[row] for row in rows]
            vectors = text_encoders.encode(
                name, chosen, cache, max_pieces=max_pieces, smoothing=smoothing
            )
            train, test = vectors[:num_train], vectors[num_train:]
            labels = data.labels[rows]
            encoded = LabelledVectors(train, test, labels[:num_train], labels[num_train:])
            if num_unlabelled:
                unlabelled = sentences.of_reviews(name, num_unlabelled, cache, smoothing)
                encoded = encoded._replace(unlabelled=unlabelled)
            pair.append(encoded)
        elif Path(name).exists():
            pair.append(_read(Path(name)))
        else:
            raise UserError(
                f"'{name}' is neither an .npz file nor an encoder "
                f"({', '.join(text_encoders.ENCODERS)}): correct the name or the path."
            )
    for name, vectors in zip((source, target), pair, strict=True):
        check_count(f"The number of training texts of {name}", len(vectors.train))
        check_count(f"The number of test texts of {name}", len(vectors.test))
    classes = np.unique(pair[0].train_labels)
    if not np.array_equal(classes, np.unique(pair[1].train_labels)) or not _paired(*pair):
        raise UserError(
            f"The rows of {source} and {target} do not correspond: give the same texts in the same "
            "order with the same labels, or other texts of the same classes and, in both files, "
            "as many anchors."
        )
    indexed = [
        vectors._replace(
            train_labels=np.searchsorted(classes, vectors.train_labels),
            test_labels=np.searchsorted(classes, vectors.test_labels),
        )
        for vectors in pair
    ]
    ordered = texts != NEWS or not {source, target} & set(text_encoders.ENCODERS)
    return LabelledPair(indexed[0], indexed[1], classes.tolist(), ordered)


def _texts(name: str, cache: Path) -> LabelledTexts:
    check_choice("set of texts", name, (NEWS, STARS, *reviews.SOURCES))
    if name == STARS:
        return reviews.with_stars(reviews.load("imdb", cache).texts)
    if name in reviews.SOURCES:
        return reviews.load(name, cache)
    articles = bbc.load(cache)
    texts = map("\n".join, zip(articles.headlines, articles.bodies, strict=True))
    return LabelledTexts(list(texts), articles.labels)


def _paired(source: LabelledVectors, target: LabelledVectors) -> bool:
    """Whether as many anchors are given in both, or neither has any and all labels are equal."""
    if source.anchors is not None and target.anchors is not None:
        return len(source.anchors) == len(target.anchors)
    return source.anchors is target.anchors and all(
        np.array_equal(getattr(source, labels), getattr(target, labels))
        for labels in ("train_labels", "test_labels")
    )


def _read(path: Path) -> LabelledVectors:
    try:
        arrays = read_npz(path, LabelledVectors._fields[:5])
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is no .npz file of plain arrays: use np.savez.") from error
    vectors = [name for name in ("train", "test", "anchors") if name in arrays]
    for name in vectors:
        arrays[name] = as_vectors(arrays[name], f"The array {name} in {path}")
        where = f"of {name} in {path}"
        check_rows(arrays[name], lambda row, where=where: f"Row {row} {where}")
    valid = (
        set(LabelledVectors._fields[:4]) <= arrays.keys()
        and len({arrays[name].shape[1] for name in vectors}) == 1
        and all(
            arrays[f"{part}_labels"].shape == arrays[part].shape[:1]
            and arrays[f"{part}_labels"].dtype.kind in "iu"
            for part in ("train", "test")
        )
        and np.isin(arrays["test_labels"], arrays["train_labels"]).all()
    )
    if not valid:
        forms = [f"{name} {list(array.shape)} of {array.dtype}" for name, array in arrays.items()]
        raise UserError(
            f"{path} holds {', '.join(forms) or 'no such array'}: give train [n, d], test [m, d], "
            "the integers train_labels [n] and test_labels [m], with every class in train_labels, "
            "and, if the texts of both files differ, anchors [k, d]."
        )
    return LabelledVectors(**arrays)
