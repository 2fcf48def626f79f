"""A damaged or hostile input file is read, or refused by one sentence; it is never executed."""

import contextlib
import io
import os
import pickle
import random
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from common.data.readers import vector_files
from common.errors import UserError
from tests.faults.fuzz import check, damaged, prepared, without_network
from tests.faults.readers import packed, write


def flip(content):
    """Flips a bit near the beginning, where a long file has no padding."""
    place = min(200, len(content) // 2)
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


CASES = int(os.environ.get("FAULT_CASES", 6))  # random ones of each reader
DEFECTS = (  # of each of the largest files of a reader
    lambda content: b"",
    lambda content: content[: len(content) // 2],
    lambda content: content[len(content) // 2 :],
    lambda content: b"\xff\xfe" + content,
    lambda content: content + content,
    flip,
)


@pytest.fixture(scope="module")
def all_readers():
    return prepared()


@pytest.mark.slow
def test_damaged_files_are_read_or_refused_by_a_sentence(all_readers, tmp_path):
    for reader_name, reader in all_readers.items():
        valid = {file: packed(file, content) for file, content in reader.files.items()}
        versions = []
        for name in sorted(valid, key=lambda file: len(valid[file]))[-2:]:
            versions.append({file: valid[file] for file in valid if file != name})
            versions += [valid | {name: change(valid[name])} for change in DEFECTS]
        versions += [damaged(reader.files, random.Random(case)) for case in range(CASES)]
        for case, files in enumerate(versions):
            with without_network():
                try:
                    check(reader, files, tmp_path / f"{reader_name}-{case}".replace("/", "-"))
                except AssertionError as error:
                    raise AssertionError(f"{reader_name}, case {case}: {error}") from error


class Payload:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.mkdir, (self.path,)


def test_pickles_are_refused_and_never_executed(all_readers, tmp_path):
    mark, pickled, tried = tmp_path / "mark", io.BytesIO(), 0
    np.save(pickled, np.array([[Payload(mark)]], object), allow_pickle=True)
    np.load(io.BytesIO(pickled.getvalue()), allow_pickle=True)
    mark.rmdir()  # so the payload works where pickles are allowed
    for reader in all_readers.values():
        for file, content in reader.files.items():
            versions = [pickled.getvalue()] if file.endswith(".npy") else []
            if isinstance(content, dict) and file.endswith(".npz"):
                versions = [content | {member: pickled.getvalue()} for member in content]
            for version in versions:
                tried += 1
                folder = tmp_path / str(tried)
                files = reader.files | {file: version}
                write({name: packed(name, whole) for name, whole in files.items()}, folder)
                with pytest.raises(UserError):
                    reader.read(folder)
    assert tried > 15 and not mark.exists()


@pytest.mark.parametrize(
    ("suffix", "write_columns"),
    [(".parquet", pa.parquet.write_table), (".feather", pa.feather.write_feather)],
)
def test_the_pickled_type_of_a_column_is_never_executed(suffix, write_columns, tmp_path):
    """The extension types that pyarrow before 14.0.1 has unpickled (CVE-2023-47248)."""
    mark, path = tmp_path / "mark", tmp_path / f"a{suffix}"
    pickled = pickle.dumps(Payload(mark))
    named = {b"extension:name": b"arrow.py_extension_type", b"extension:metadata": pickled}
    fields = []
    for name, kind in (("vectors", pa.list_(pa.float32(), 2)), ("words", pa.string())):
        extension = {b"ARROW:" + key: value for key, value in named.items()}
        fields.append(pa.field(name, kind, metadata=extension))
    lists = pa.FixedSizeListArray.from_arrays(np.ones(4, np.float32), 2)
    write_columns(pa.table([lists, ["a", "b"]], schema=pa.schema(fields)), path)
    with warnings.catch_warnings(action="ignore"), contextlib.suppress(UserError):
        vector_files.read(path)
    assert not mark.exists()
