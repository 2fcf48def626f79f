"""TFDS data sets that are built once from a pinned package and read without TensorFlow.

A set is a table whose columns are texts or arrays. It is stored below the cache directory as
array_record files, the only copy between the package and the arrays in memory.
"""

import contextlib
import io
import re
import shutil
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tensorflow_datasets as tfds
from absl import logging

from common.data.packages import CACHE_VARIABLE, Package
from common.data.space import Space
from common.errors import UserError

# Rows stored as one TFDS example. Decoding costs some 50 microseconds an example: 20,000 vectors of
# dimension 384 are read in 1 s if each is an example, and in 0.2 s in blocks.
BLOCK_ROWS = 1_000
DISK_ERROR = re.compile(r"(?:open|write|close)\(\) failed: ([^;]+)")  # raised by array_record
TEXTS = tfds.features.Sequence(tfds.features.Text())  # feature of a column of texts

Table = dict[str, Any]  # name of a column -> a list of texts, or an array of rows
T = TypeVar("T")


def array_column(shape: tuple[int, ...], dtype: type) -> tfds.features.Tensor:
    """The feature of a column whose rows are arrays of one shape."""
    return tfds.features.Tensor(shape=(None, *shape), dtype=dtype, encoding="bytes")


class PackageBuilder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """A data set with one split, `train`, built from a pinned package.

    A subclass defines VERSION, `_source` and `_table`. The order of rows is preserved. A set of
    another kind than a table overrides `_features` and `_split_generators` instead of `_table`.
    """

    def __init__(self, *, cache: Path, **kwargs):
        self._cache, self._config_name = cache, kwargs.get("config", "")
        options = {"data_dir": cache / "tfds", "file_format": "array_record", **kwargs}
        try:
            super().__init__(**options)
        except Exception as error:  # TFDS raises many types when a stored description is damaged
            if not Path(self.data_dir).exists():
                raise
            _delete_damaged(self, error)
            super().__init__(**options)

    @abstractmethod
    def _source(self) -> tuple[Package, dict]:
        """Returns the package and the TFDS feature of each column."""

    def _table(self) -> Table:
        """Reads the package and returns all columns, of equal length."""
        raise NotImplementedError

    def _features(self) -> dict:
        """Returns the features of an example: a block of rows, and the number of all rows."""
        return self._source()[1] | {"num_rows": tfds.features.Scalar(np.int64)}

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(
            builder=self,
            description=sys.modules[type(self).__module__].__doc__,
            features=tfds.features.FeaturesDict(self._features()),
            disable_shuffling=True,
            license=self._source()[0].licence,
        )

    def _split_generators(self, dl_manager) -> dict:
        del dl_manager  # packages are fetched by common/data/packages.py
        return {"train": self._generate_examples()}

    def _generate_examples(self) -> Iterator[tuple[int, dict]]:
        table = self._table()
        num_rows = len(next(iter(table.values())))
        for block, start in enumerate(range(0, num_rows, BLOCK_ROWS)):
            rows = slice(start, start + BLOCK_ROWS)
            columns = {name: column[rows] for name, column in table.items()}
            yield block, columns | {"num_rows": num_rows}


def read_table(builder: PackageBuilder, cache: Path) -> Table:
    """Returns the columns of a set, after building it if need be; raises as `prepare`."""

    def read():
        # A decorator of TFDS hides the arguments.
        source = builder.as_data_source(split="train")  # pyright: ignore[reportCallIssue]
        blocks = source.__getitems__(range(len(source)))
        table: Table = {}
        for name in builder._source()[1]:
            columns = [block[name] for block in blocks]
            if isinstance(columns[0], np.ndarray):
                table[name] = np.concatenate(columns)
            else:
                table[name] = [text.decode() for column in columns for text in column]
            if len(table[name]) != blocks[0]["num_rows"]:  # dataset_info.json lost some blocks
                raise ValueError("rows are missing")
        return table

    return read_or_build(builder, cache, read)


def read_words(builder: type[PackageBuilder], config: str | None, cache: Path) -> Space:
    """Returns the columns `word` and `vector` of a set, by a builder config, as `read_table`."""
    table = read_table(builder(config=config, cache=cache), cache)
    return Space(table["word"], table["vector"])


def read_or_build(builder: tfds.core.DatasetBuilder, cache: Path, read: Callable[[], T]) -> T:
    """Returns `read()`, after building the set if need be; raises as `read` and `prepare`."""
    if Path(builder.data_dir).exists():
        try:
            return read()
        except UserError:
            raise
        except Exception as error:  # TFDS and array_record raise many types on damaged files
            _delete_damaged(builder, error)
    logging.info("Building '%s' once into %s", builder.info.full_name, builder.data_dir)
    prepare(builder, cache)
    return read()


def _delete_damaged(builder: tfds.core.DatasetBuilder, error: Exception) -> None:
    if isinstance(error, OSError | MemoryError):  # these say nothing about the content of files
        raise error
    about = builder.data_dir, type(error).__name__
    logging.warning("The data set in %s is damaged (%s): building it again", *about)
    shutil.rmtree(builder.data_dir)


@contextlib.contextmanager
def explain_damage(name: str, folder: Path | str) -> Iterator[None]:
    """Turns what TFDS raises on a damaged prepared set into a UserError that names `folder`."""
    try:
        yield
    except (UserError, ImportError):  # a builder of the catalogue may import other packages
        raise
    except Exception as error:
        raise UserError(
            f"The prepared set {name} can't be read ({error}): delete {folder} and run again, to "
            "prepare it anew."
        ) from error


def prepare(builder: tfds.core.DatasetBuilder, cache: Path) -> None:
    """Builds a data set, wholly or not at all; UserError: the cache is not writable."""
    tfds.disable_progress_bar()  # those of the builders know the number of rows
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # stdout is for the table of a run
            builder.download_and_prepare()
    except (OSError, RuntimeError) as error:
        match = DISK_ERROR.search(str(error))
        if isinstance(error, RuntimeError) and not match:
            raise
        reason = match[1] if match else getattr(error, "strerror", None) or error
        if Path(builder.data_dir).exists():  # another process has built it in the meantime
            builder.info.read_from_directory(builder.data_dir)
            return
        raise UserError(
            f"Cannot build the data set {builder.info.full_name} in {cache} "
            f"({reason}): point {CACHE_VARIABLE} at a writable folder with room."
        ) from error
    finally:
        tfds.enable_progress_bar()
