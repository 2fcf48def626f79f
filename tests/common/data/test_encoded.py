import numpy as np
import pytest

from common.data import encoded
from common.data.wheels import cache_dir
from common.errors import UserError

OPTIONS = {
    "texts": "rotten_tomatoes",
    "num_train": 30,
    "num_test": 10,
    "max_pieces": 32,
    "smoothing": 1e-3,
}


def view(dimension=4, seed=0, **changes):
    rng = np.random.default_rng(seed)
    arrays = {
        "train": rng.normal(size=(20, dimension)),
        "test": rng.normal(size=(10, dimension)),
        "train_labels": np.arange(20) % 3 + 1,
        "test_labels": np.arange(10) % 3 + 1,
    }
    arrays |= changes
    return {name: array for name, array in arrays.items() if array is not None}


def save(tmp_path, first, second):
    paths = [str(tmp_path / name) for name in ("first.npz", "second.npz")]
    for path, arrays in zip(paths, (first, second), strict=True):
        np.savez(path, **arrays)
    return paths


def load(*names):
    return encoded.load(*names, **OPTIONS, cache=cache_dir())


def test_encoders_by_name_see_the_same_texts():
    pair = load("minilm", "glove")
    assert pair.source.train.shape == (30, 384) and pair.target.train.shape == (30, 50)
    assert pair.source.test.shape == (10, 384) and pair.target.test.shape == (10, 50)
    np.testing.assert_array_equal(pair.source.train_labels, pair.target.train_labels)
    assert pair.classes == [0, 1] and set(pair.source.train_labels) == {0, 1}


def test_files_and_class_indices(tmp_path):
    pair = load(*save(tmp_path, view(), view(6, seed=1)))
    assert pair.classes == [1, 2, 3]
    np.testing.assert_array_equal(pair.target.test_labels, np.arange(10) % 3)
    assert pair.target.train.shape == (20, 6) and pair.target.train.dtype == np.float32
    assert pair.source.anchors is None


def test_given_anchors_free_the_rows(tmp_path):
    other = view(6, seed=1, anchors=np.ones((5, 6)))
    other["train"], other["train_labels"] = other["train"][1:9], other["train_labels"][1:9]
    pair = load(*save(tmp_path, view(anchors=np.ones((5, 4))), other))
    assert len(pair.target.train) == 8 and pair.source.anchors.shape == (5, 4)


HOLES = np.ones((20, 4))
HOLES[7] = 0
NANS = np.ones((10, 4))
NANS[3, 1] = np.nan


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"test_labels": None, "test": None}, "has no array test, test_labels"),
        ({"train": HOLES}, "Row 7 of train in .*zeros alone"),
        ({"test": NANS}, "Row 3 of test in .*not finite"),
        ({"test": np.ones((10, 3))}, "rows of test in .* have 3 numbers, those of train 4"),
        ({"train": np.ones(20)}, r"train in .* has shape \(20,\)"),
        ({"train_labels": np.arange(19)}, r"train_labels in .* has shape \(19,\)"),
        ({"train_labels": np.arange(20) / 2}, "train_labels in .* type float64"),
        ({"test_labels": np.arange(10)}, "holds 0, which train_labels does not"),
        ({"train_labels": np.ones(20, int), "test_labels": np.ones(10, int)}, "one class alone"),
        ({"train": np.ones((19, 4)), "train_labels": np.arange(19) % 3 + 1}, "19 and 20 rows of"),
        ({"train_labels": np.arange(20)[::-1] % 3 + 1}, "Row 0 of train has different labels"),
        ({"train_labels": np.arange(20) % 4 + 1}, "of different classes"),
        ({"anchors": np.ones((5, 4))}, "Only one of .* has an array anchors"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path, changes, says):
    with pytest.raises(UserError, match=says):
        load(*save(tmp_path, view(**changes), view(6, seed=1)))


def test_unequal_anchors(tmp_path):
    paths = save(tmp_path, view(anchors=np.ones((5, 4))), view(6, anchors=np.ones((4, 6))))
    with pytest.raises(UserError, match="have 5 and 4 rows of anchors"):
        load(*paths)


def test_what_is_no_file_of_arrays(tmp_path):
    path = tmp_path / "text.npz"
    path.write_text("no arrays")
    with pytest.raises(UserError, match=r"no whole \.npz file"):
        load(str(path), "glove")
    with pytest.raises(UserError, match=r"'bert' is neither an \.npz file nor an encoder"):
        load("minilm", "bert")


def test_more_texts_than_there_are():
    with pytest.raises(UserError, match="'rotten_tomatoes' has 8530 texts"):
        encoded.load("glove", "minilm", **OPTIONS | {"num_train": 9_000}, cache=cache_dir())
