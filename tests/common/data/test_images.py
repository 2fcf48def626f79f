import hashlib
import shutil

import numpy as np
import pytest
import tensorflow_datasets as tfds

from common.data.packages import cache_dir
from common.data.sets import images
from common.errors import UserError
from tests.faults.readers import idx_files, packed, write


class TinyPictures(tfds.core.GeneratorBasedBuilder):
    """A set that TFDS finds by its name, like those of its catalogue."""

    VERSION = tfds.core.Version("1.0.0")
    PICTURES = np.random.default_rng(0).integers(0, 256, (7, 4, 6, 3), dtype=np.uint8)

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            features=tfds.features.FeaturesDict(
                {
                    "image": tfds.features.Tensor(shape=(4, 6, 3), dtype=np.uint8),
                    "label": tfds.features.ClassLabel(num_classes=3),
                    "id": tfds.features.Text(),
                }
            ),
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for i, picture in enumerate(self.PICTURES):
            yield i, {"image": picture, "label": i % 3, "id": str(i)}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    builder = tfds.builder("tiny_pictures", data_dir=cache / "tfds", file_format="array_record")
    builder.download_and_prepare()
    return cache


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "split", "count", "checksum", "labels"),  # the first digits of the pixels' SHA-256
    [
        ("mnist_5k", "train", 2_500, "0f77cf54c1739d85", [0, 1, 2, 3, 4]),
        ("mnist_5k", "test", 2_500, "a4eb3f28837f3992", [0, 1, 2, 3, 4]),
        ("mnist_5k", "train[:30]+test[:1%]", 55, "b6cca216a971480c", [0, 1, 2, 3, 4]),
        ("mnist", "train[50000:]", 10_000, "2b079632b0defaf5", [3, 8, 6, 9, 6]),
        # As in the published test files: seven, two, one, ...; ankle boot, pullover, trousers, ...
        ("mnist", "test", 10_000, "6d87418db22cc802", [7, 2, 1, 0, 4]),
        ("fashion_mnist", "train[50000:]", 10_000, "36c6e3dcb65f0d5f", [9, 2, 1, 0, 2]),
        ("fashion_mnist", "test", 10_000, "c867c93ff9536059", [9, 2, 1, 1, 6]),
    ],
)
def test_images_of_packages_are_whole(bare, name, split, count, checksum, labels):
    part = images.load(name, split, bare if name == "mnist_5k" else cache_dir())
    assert part.images.shape == (count, 28, 28, 1) and part.images.dtype == np.uint8
    assert hashlib.sha256(part.images).hexdigest().startswith(checksum)
    assert part.labels[:5].tolist() == labels and len(np.bincount(part.labels)) == 10
    assert part.split == split


@pytest.mark.parametrize("damaged", ["dataset_info.json", "*array_record*"])
def test_a_damaged_prepared_set_is_a_user_error(tiny, tmp_path, damaged):
    shutil.copytree(tiny / "tfds", tmp_path / "tfds")
    for path in (tmp_path / "tfds").rglob(damaged):
        path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(UserError, match=r"tiny_pictures.* can't be read .*delete"):
        images.load("tiny_pictures", "train", tmp_path)


def test_both_splits_of_idx_files_are_read_compressed_or_not(tmp_path):
    write({name: packed(name, content) for name, content in idx_files(5, 3).items()}, tmp_path)
    for split, count in (("train", 5), ("test", 3)):
        part = images.load(str(tmp_path), split, tmp_path)
        expected = np.arange(12 * count).reshape(count, 4, 3, 1)
        np.testing.assert_array_equal(part.images, expected)
        np.testing.assert_array_equal(part.labels, np.arange(count))
    with pytest.raises(UserError, match=r"no split 'train\[:5\]'"):
        images.load(str(tmp_path), "train[:5]", tmp_path)


def test_a_set_of_the_catalogue_is_read_from_its_prepared_files(tiny):
    part = images.load("tiny_pictures", "train", tiny)
    np.testing.assert_array_equal(part.images, TinyPictures.PICTURES)
    np.testing.assert_array_equal(part.labels, [0, 1, 2, 0, 1, 2, 0])


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        ("nosuchset", "train", "no image set 'nosuchset'.*choose mnist_5k"),
        ("No Set", "train", "no image set 'No Set'"),
        ("emnist/none", "train", "no image set 'emnist/none'"),
        ("imdb_reviews", "train", "no labelled 8-bit images of one size"),
        ("tiny_pictures", "test", "no images in a split 'test'.*take train, or"),
        ("tiny_pictures", "train[:0]", r"no images in a split 'train\[:0\]'"),
        ("tiny_pictures", "train[5", "no images in a split"),
        ("food101", "train", "no labelled 8-bit images of one size"),
    ],
)
def test_unknown_sets_and_splits_are_user_errors(tiny, name, split, message):
    with pytest.raises(UserError, match=message) as caught:
        images.load(name, split, tiny)
    assert "\n" not in str(caught.value)


def test_preparing_a_set_of_the_catalogue_needs_tensorflow(tmp_path, monkeypatch):
    monkeypatch.setattr(images.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"'cifar10' with TensorFlow, once: .*cifar10/3"):
        images.load("cifar10", "train", tmp_path)
