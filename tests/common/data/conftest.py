import numpy as np
import pytest

from tests import own_cache
from tests.samples import bert_files


@pytest.fixture
def folder(tmp_path):
    """A folder with a BERT whose vocabulary are four words."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    rng = np.random.default_rng(0)
    files = bert_files(lambda shape: rng.normal(scale=0.5, size=shape).astype(np.float32))
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A cache with all packages and nothing built from them before this module."""
    return own_cache.linked(tmp_path_factory.mktemp("bare"), ["packages"])
