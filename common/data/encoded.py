"""Two encoders' views of labelled texts: embedded ones by name, a user's own by path.

A file is an `.npz` of arrays `train` [n, d], `test` [m, d], `train_labels` [n], `test_labels` [m]
and, where row i of the two files' `train` is not the same text, `anchors` [k, d]: row i of the two
files' `anchors` is, the known pairs first.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from common.data import encoders, numpy_files, reviews
from common.errors import UserError

VECTORS = ("train", "test", "anchors")


class Encoded(NamedTuple):
    """One encoder's vectors of training and test texts, and the class index of each text."""

    train: Float[np.ndarray, "n d"]
    test: Float[np.ndarray, "m d"]
    train_labels: Int[np.ndarray, " n"]
    test_labels: Int[np.ndarray, " m"]
    anchors: Float[np.ndarray, "k d"] | None = None  # given pairs; None: row i is the same text


class Pair(NamedTuple):
    """Both encoders' views; class indices follow the sorted labels."""

    source: Encoded
    target: Encoded
    classes: list


def load(
    source: str,
    target: str,
    *,
    texts: str,
    num_train: int,
    num_test: int,
    max_pieces: int,
    smoothing: float,
    cache: Path,
) -> Pair:
    """Reads or encodes both views.

    Args:
      source: name of an encoder (`common/data/encoders.py`) or path of an .npz.
      target: likewise.
      texts: name of a set of texts (`common/data/reviews.py`) for the encoders by name.
      num_train: training texts of those; the same random ones in every run.
      num_test: test texts of those.
      max_pieces: see `encoders.encode`.
      smoothing: likewise.
      cache: the cache directory.

    Raises:
      UserError: an unknown encoder, a file that can't be read or lacks an array, shapes that do not
        fit, rows of NaN or zeros, or labels and rows that differ between the views.
    """
    views = []
    for name in (source, target):
        if name in encoders.ENCODERS:
            views.append(_embedded(name, texts, num_train, num_test, max_pieces, smoothing, cache))
        elif Path(name).exists():
            views.append(_read(Path(name)))
        else:
            raise UserError(
                f"'{name}' is neither an .npz file nor an encoder ({', '.join(encoders.ENCODERS)}):"
                " correct the name or the path."
            )
        _check(views[-1], name)
    _check_pair(*views, source, target)
    classes = np.unique(np.concatenate([view.train_labels for view in views]))
    indexed = [
        view._replace(
            train_labels=np.searchsorted(classes, view.train_labels),
            test_labels=np.searchsorted(classes, view.test_labels),
        )
        for view in views
    ]
    return Pair(*indexed, classes.tolist())


def _embedded(name, texts, num_train, num_test, max_pieces, smoothing, cache) -> Encoded:
    data = reviews.load(texts, cache)
    if min(num_train, num_test) < 1 or num_train + num_test > len(data.texts):
        raise UserError(
            f"num_train={num_train} and num_test={num_test} do not fit: '{texts}' has "
            f"{len(data.texts)} texts, and each takes at least one."
        )
    chosen = np.random.default_rng(0).permutation(len(data.texts))[: num_train + num_test]
    vectors = encoders.encode(
        name,
        [data.texts[row] for row in chosen],
        cache,
        max_pieces=max_pieces,
        smoothing=smoothing,
    )
    labels = data.labels[chosen]
    return Encoded(vectors[:num_train], vectors[num_train:], labels[:num_train], labels[num_train:])


def _read(path: Path) -> Encoded:
    try:
        found = numpy_files.npz(path, Encoded._fields)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} is no whole .npz file of plain arrays: save it with np.savez(path, train=..., "
            "test=..., train_labels=..., test_labels=...)."
        ) from error
    missing = [name for name in Encoded._fields[:4] if name not in found]
    if missing:
        raise UserError(f"{path} has no array {', '.join(missing)}: save it with np.savez.")
    for name in found.keys() & set(VECTORS):
        array = found[name]
        if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "fiu":
            raise UserError(
                f"The array {name} in {path} has shape {array.shape} and type {array.dtype}: save "
                "an array [rows, dimension] of real numbers."
            )
        found[name] = array.astype(np.float32)
    return Encoded(**found)


def _check(view: Encoded, name: str) -> None:
    for part in VECTORS:
        vectors = getattr(view, part)
        if vectors is None:
            continue
        if vectors.shape[1] != view.train.shape[1]:
            raise UserError(
                f"The rows of {part} in {name} have {vectors.shape[1]} numbers, those of train "
                f"{view.train.shape[1]}: encode both with one encoder."
            )
        for wrong, what in (
            (~np.isfinite(vectors).all(axis=1), "a number that is not finite"),
            (~vectors.any(axis=1), "zeros alone, which have no direction"),
        ):
            if wrong.any():
                raise UserError(
                    f"Row {wrong.argmax()} of {part} in {name} holds {what}: leave that text out."
                )
    for part in ("train", "test"):
        labels, rows = getattr(view, f"{part}_labels"), len(getattr(view, part))
        if labels.shape != (rows,) or labels.dtype.kind not in "iu":
            raise UserError(
                f"{part}_labels in {name} has shape {labels.shape} and type {labels.dtype}: give "
                f"one integer for each of the {rows} rows of {part}."
            )
    unseen = np.setdiff1d(view.test_labels, view.train_labels)
    if len(unseen):
        raise UserError(
            f"test_labels in {name} holds {unseen[0]}, which train_labels does not: give training "
            "texts of every class."
        )
    if len(np.unique(view.train_labels)) < 2:
        raise UserError(f"train_labels in {name} holds one class alone: give two or more.")


def _check_pair(source: Encoded, target: Encoded, *names: str) -> None:
    both = f"{names[0]} and {names[1]}"
    if (source.anchors is None) != (target.anchors is None):
        raise UserError(f"Only one of {both} has an array anchors: give both or neither.")
    if not np.array_equal(np.unique(source.train_labels), np.unique(target.train_labels)):
        raise UserError(f"The labels in {both} are of different classes: give both the same.")
    if source.anchors is not None:
        if len(source.anchors) != len(target.anchors):
            raise UserError(
                f"{both} have {len(source.anchors)} and {len(target.anchors)} rows of anchors: "
                "row i of both has to be the same text."
            )
        return
    for part in ("train", "test"):
        rows = [len(getattr(view, part)) for view in (source, target)]
        if rows[0] != rows[1]:
            raise UserError(
                f"{both} have {rows[0]} and {rows[1]} rows of {part}: give both the same texts, or "
                "an array anchors of known pairs."
            )
        labels = [getattr(view, f"{part}_labels") for view in (source, target)]
        differ = labels[0] != labels[1]
        if differ.any():
            raise UserError(
                f"Row {differ.argmax()} of {part} has different labels in {both}: give both the "
                "same texts in one order, or an array anchors of known pairs."
            )
