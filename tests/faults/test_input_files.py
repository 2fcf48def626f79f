"""A damaged or hostile input file is read, or refused by one sentence; it is never executed."""

import io
import random
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from tests.faults.fuzz import check, damaged, prepared, without_network
from tests.faults.readers import packed, write

CASES = 15  # damaged versions of each reader's files


@pytest.fixture(scope="module")
def all_readers():
    return prepared()


def test_damaged_files_are_read_or_refused_by_a_sentence(all_readers, tmp_path):
    with without_network():
        for name, reader in all_readers.items():
            for case in range(CASES):
                files = damaged(reader.files, random.Random(case))
                try:
                    check(reader, files, tmp_path / f"{name}-{case}".replace("/", "-"))
                except AssertionError as error:
                    raise AssertionError(f"{name}, case {case}: {error}") from error


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
