"""Labelled texts encoded by two encoders, from encoders by name or from files by path.

A file is an `.npz` with the arrays `train` [n, d], `test` [m, d], `train_labels` [n] and
`test_labels` [m]. Row i of both files is the same text, or else both files have an array
`anchors` [k, d] whose row i is the same text in both, the known pairs first.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from common.data.readers.vector_files import as_vectors, is_valid, refuse_invalid
from common.data.sets import bbc, reviews
from common.data.sets.reviews import LabelledTexts
from common.encoders import texts as text_encoders
from common.errors import UserError, check_choice, check_count
from common.files import read_npz
from common.spaces import messages, sentences

NEWS = "bbc"
STARS = "imdb_stars"
MESSAGES = "messages"


class LabelledVectors(NamedTuple):
    """One encoder's vectors of training and test texts, with class indices.

    `anchors` is None if row i of both encoders is the same text; of `unlabelled` it always is.
    """

    train: Float[np.ndarray, "n d"]
    test: Float[np.ndarray, "m d"]
    train_labels: Int[np.ndarray, " n"]
    test_labels: Int[np.ndarray, " m"]
    anchors: Float[np.ndarray, "k d"] | None = None
    unlabelled: Float[np.ndarray, "u d"] | None = None


class LabelledPair(NamedTuple):
    """Both encoders' vectors, and the sorted labels, to which class indices refer.

    `ordered`: whether differences of class indices mean something; taken for granted in files.
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
    """Reads or encodes the texts of both encoders, which are random ones, the same in every run.

    `source` and `target` are names of encoders (`common/encoders/texts.py`) or of spaces of
    messages, or paths of .npz files. `texts` is 'bbc', five classes of news, headline and body; one
    of `common/data/sets/reviews.py`, two classes; 'imdb_stars', the 2,004 reviews of IMDB whose
    writers give marks out of ten, five classes; or 'messages' for two of `messages.SPACES`, with
    the program as class. The unlabelled are sentences of reviews, or other messages.

    UserError: an unknown encoder, a file that cannot be read or lacks an array, arrays of other
    shapes or with invalid rows, or labels and rows that differ between source and target.
    """
    sizes = num_train, num_test, num_unlabelled
    if texts == MESSAGES and {source, target} <= messages.SPACES.keys():
        pair = _messages((source, target), sizes, cache)
    else:
        encoding = {"max_pieces": max_pieces, "smoothing": smoothing}
        pair = [_load(name, texts, sizes, encoding, cache) for name in (source, target)]
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
    encoded = {source, target} & {*text_encoders.ENCODERS, *messages.SPACES}
    ordered = texts not in (NEWS, MESSAGES) or not encoded
    return LabelledPair(indexed[0], indexed[1], classes.tolist(), ordered)


def _load(
    name: str, texts: str, sizes: tuple[int, int, int], encoding: dict, cache: Path
) -> LabelledVectors:
    """What an encoder by name gives to labelled texts, or the content of a file."""
    if name not in text_encoders.ENCODERS:
        if Path(name).exists():
            return _read(Path(name))
        raise UserError(
            f"'{name}' is neither an .npz file nor an encoder "
            f"({', '.join(text_encoders.ENCODERS)}), nor a space of messages where the texts are "
            f"'{MESSAGES}': correct the name or the path."
        )
    data = _texts(texts, cache)
    num_train, num_test, num_unlabelled = sizes
    if num_train + num_test > len(data.texts):
        raise UserError(
            f"num_train={num_train} and num_test={num_test} are too many: '{texts}' has "
            f"{len(data.texts)} texts."
        )
    rows = np.random.default_rng(0).permutation(len(data.texts))[: num_train + num_test]
    vectors = text_encoders.encode(name, [data.texts[row] for row in rows], cache, **encoding)
    labels = np.split(data.labels[rows], [num_train])
    unlabelled = None
    if num_unlabelled:
        unlabelled = sentences.of_reviews(name, num_unlabelled, cache, encoding["smoothing"])
    return LabelledVectors(*np.split(vectors, [num_train]), *labels, unlabelled=unlabelled)


def _messages(
    names: tuple[str, str], sizes: tuple[int, int, int], cache: Path
) -> list[LabelledVectors]:
    """Messages that both spaces have, with their programs as classes; no text is there twice."""
    labels, both = messages.load_classified(names, sum(sizes), cache)
    ends = np.cumsum(sizes[:2])
    classes = np.split(labels, ends)[:2]
    pair = []
    for vectors in both:
        train, test, rest = np.split(vectors, ends)
        pair.append(LabelledVectors(train, test, *classes, unlabelled=rest if len(rest) else None))
    return pair


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
        if len(rows := np.flatnonzero(~is_valid(arrays[name]))):
            refuse_invalid(("Row", "Rows"), rows.tolist(), f"of {name} in {path}")
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
