import numpy as np
import pytest

from tests.samples import bert_files


@pytest.fixture
def folder(tmp_path):
    """A user's own model of four words."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    rng = np.random.default_rng(0)
    files = bert_files(lambda shape: rng.normal(scale=0.5, size=shape).astype(np.float32))
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder
