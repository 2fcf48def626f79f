"""A few damaged files for each reader, and files that would run code; `fuzz.md` has the many."""

import io
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from tests.faults import fuzz
from tests.faults.readers import table, zipped

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    found = table(tmp_path_factory.mktemp("prepared"))
    for name, reader in found.items():
        folder = tmp_path_factory.mktemp("whole")
        fuzz.laid(fuzz.whole(reader), folder)
        with warnings.catch_warnings(action="ignore"):
            assert reader.read(folder) is not None, name
    return found


def test_damaged_files_are_read_or_refused(readers):
    broken = {name: fuzz.run(reader, 12, seed=0)[1] for name, reader in readers.items()}
    assert not {name: [case.error for case in found] for name, found in broken.items() if found}


def test_a_flag_that_has_no_end(readers, tmp_path):
    (tmp_path / "arguments").write_text("--co" + "x" * 3000)
    with pytest.raises(UserError, match="too long for any"):
        readers["flags"].read(tmp_path)


class Payload:
    """What a pickle would run: it leaves a folder behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.mkdir, (self.path,)


def test_pickles_are_refused_and_never_run(readers, tmp_path):
    mark, content, tried = tmp_path / "mark", io.BytesIO(), 0
    np.save(content, np.array([[Payload(mark)]], object), allow_pickle=True)
    np.load(io.BytesIO(content.getvalue()), allow_pickle=True)  # it does run where one lets it
    mark.rmdir()
    for name, reader in readers.items():
        for file, whole in reader.files.items():
            if isinstance(whole, dict) and file.endswith(".npz"):
                for member in whole:
                    laid = {file: zipped(whole | {member: content.getvalue()})}
                    tried += refused(reader, laid, tmp_path / f"{name}-{member}".replace("/", "-"))
            elif file.endswith(".npy"):
                tried += refused(reader, {file: content.getvalue()}, tmp_path / name)
    assert tried > 30 and not mark.exists()


def refused(reader, changed, folder):
    fuzz.laid(fuzz.whole(reader) | changed, folder)
    try:
        found = reader.read(folder)
    except UserError:
        return 1
    assert found == {}  # kept arrays are computed anew
    return 1


def test_no_code_of_ours_reads_pickles():
    files = [path for path in ROOT.rglob("*.py") if "tests" not in path.relative_to(ROOT).parts]
    assert len(files) > 80
    for path in files:
        assert not re.search(r"allow_pickle=True|import pickle|pickle\.load", path.read_text()), (
            path
        )
