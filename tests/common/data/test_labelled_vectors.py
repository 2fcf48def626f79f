import numpy as np
import pytest

from common.data.packages import cache_dir
from common.errors import UserError
from common.spaces import labelled_vectors

OPTIONS = {
    "texts": "rotten_tomatoes",
    "num_train": 30,
    "num_test": 10,
    "max_pieces": 32,
    "smoothing": 1e-3,
}


def arrays(dimension=4, seed=0, **changes):
    """The arrays of a valid file, with changes; None leaves an array out."""
    rng = np.random.default_rng(seed)
    valid = {
        "train": rng.normal(size=(20, dimension)),
        "test": rng.normal(size=(10, dimension)),
        "train_labels": np.arange(20) % 3 + 1,
        "test_labels": np.arange(10) % 3 + 1,
    }
    valid |= changes
    return {name: array for name, array in valid.items() if array is not None}


def save(tmp_path, first, second):
    paths = [str(tmp_path / name) for name in ("first.npz", "second.npz")]
    for path, content in zip(paths, (first, second), strict=True):
        np.savez(path, **content)
    return paths


def load(*names):
    return labelled_vectors.load(*names, **OPTIONS, cache=cache_dir())


def test_labels_of_files_become_class_indices(tmp_path):
    pair = load(*save(tmp_path, arrays(), arrays(6, seed=1)))
    assert pair.classes == [1, 2, 3]
    np.testing.assert_array_equal(pair.target.test_labels, np.arange(10) % 3)
    assert pair.target.train.shape == (20, 6) and pair.target.train.dtype == np.float32
    assert pair.source.anchors is None


def test_with_given_anchors_the_texts_may_differ(tmp_path):
    other = arrays(6, seed=1, anchors=np.ones((5, 6)))
    other["train"], other["train_labels"] = other["train"][1:9], other["train_labels"][1:9]
    pair = load(*save(tmp_path, arrays(anchors=np.ones((5, 4))), other))
    assert len(pair.target.train) == 8 and pair.source.anchors.shape == (5, 4)


ZERO_ROW = np.ones((20, 4))
ZERO_ROW[7] = 0
NAN = np.ones((10, 4))
NAN[3, 1] = np.nan


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_labels": None}, r"holds train \[20, 4\].* of int64: give train \[n, d\], test"),
        ({"train": ZERO_ROW}, "Row 7 of train in .*only zeros"),
        ({"test": NAN}, "Row 3 of test in .*NaN"),
        ({"test": np.ones((10, 3))}, r"test \[10, 3\] of float32.*: give train"),
        ({"train": np.ones(20)}, r"array train in .* is of shape \(20,\)"),
        ({"train_labels": np.arange(19)}, r"train_labels \[19\]"),
        ({"train_labels": np.arange(20) / 2}, r"train_labels \[20\] of float64"),
        ({"test_labels": np.arange(10)}, "with every class in train_labels"),
        ({"train": np.ones((19, 4)), "train_labels": np.arange(19) % 3 + 1}, "not correspond"),
        ({"train_labels": np.arange(20)[::-1] % 3 + 1}, "rows of .* do not correspond"),
        ({"train_labels": np.arange(20) % 4 + 1}, "not correspond: .* of the same classes"),
        ({"anchors": np.ones((5, 4))}, "not correspond: .* in both files, as many anchors"),
    ],
)
def test_an_invalid_file_is_a_user_error(tmp_path, changes, message):
    others = [{}, {"anchors": np.ones((4, 6))}] if "anchors" in changes else [{}]
    for other in others:
        with pytest.raises(UserError, match=message):
            load(*save(tmp_path, arrays(**changes), arrays(6, seed=1, **other)))


@pytest.mark.network
def test_other_files_unknown_names_and_too_many_texts_are_user_errors(tmp_path):
    path = tmp_path / "text.npz"
    path.write_text("no arrays")
    with pytest.raises(UserError, match=r"no \.npz file of plain arrays"):
        load(str(path), "glove")
    with pytest.raises(UserError, match=r"'bert' is neither an \.npz file nor an encoder"):
        load("bert", "glove")
    with pytest.raises(UserError, match="'rotten_tomatoes' has 8530 texts"):
        labelled_vectors.load("glove", "glove", **OPTIONS | {"num_train": 9_000}, cache=cache_dir())
