"""What the README shows is run, or at least there."""

import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_python_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = {
        "source": rng.normal(size=(50, 6)),
        "target": rng.normal(size=(60, 8)),
        "new_source_vectors": rng.normal(size=(3, 6)),
        "pairs": np.stack([np.arange(20), np.arange(20)], axis=1),
    }
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    assert blocks
    for block in blocks:
        exec(block, names)
    assert names["mapped"].shape == (3, 8)


def test_files_and_values_that_it_names_are_there():
    paths = r"configs/(?!my_paper)\w+/\w+\.py|docs/[\w.]+|common/[\w/]+\.py"
    for path in re.findall(paths, README):
        assert (ROOT / path).exists(), path
    config = "".join(path.read_text() for path in ROOT.glob("configs/*/*.py"))
    for name in re.findall(r"--config\.([\w.]+)", README):
        if name not in ("name",):
            assert f"config.{name}" in config, name
