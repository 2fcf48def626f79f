"""The command isthmus."""

import importlib.metadata
import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import isthmus
from common import alignment, retrieval
from common.data import packages
from common.encoders import texts
from isthmus import commands as entry
from isthmus.align import discovery
from tests.samples import normal

ROOT = Path(__file__).parents[1]


def called(monkeypatch, *arguments):
    """The module that a command runs, and its arguments."""
    modules = []
    monkeypatch.setattr(sys, "argv", ["isthmus", *arguments])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(runpy, "run_module", lambda name, **_: modules.append(name))
    entry.main()
    return *modules, sys.argv[1:]


@pytest.mark.parametrize("arguments", [[], ["--help"], ["help"]])
def test_help_lists_the_commands_and_papers_without_importing_jax(arguments):
    code = "import isthmus.commands, sys; isthmus.commands.main(); dir(isthmus)\n"
    code += "assert not {'jax', 'numpy'} & sys.modules.keys()"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in (*entry.MODULES, "run", "anchor_opt"):
        assert f" {name}" in done.stdout
    assert len(done.stdout.splitlines()) < 13


def test_every_command_runs_its_module(monkeypatch, capsys):
    flags = ["--map=m.npz", "--out=o.npy"]
    assert called(monkeypatch, "align", *flags) == ("isthmus.align", flags)
    given = ["new.npy", *flags]
    assert called(monkeypatch, "apply", *given) == ("isthmus.apply", given)
    assert called(monkeypatch, "migrate", "--old=a") == ("isthmus.store", ["--old=a"])
    assert called(monkeypatch, "encode", "--input=t") == ("isthmus.texts", ["--input=t"])
    assert called(monkeypatch, "run", "lpl", "--help") == ("lpl.main", ["--help"])
    for module in (*entry.MODULES.values(), *(f"{paper}.main" for paper in entry.PAPERS)):
        assert importlib.util.find_spec(module), module
    assert called(monkeypatch, "--version") == (["--version"],)
    assert capsys.readouterr().out.split()[-1] == importlib.metadata.version("isthmus")


@pytest.mark.slow
@pytest.mark.parametrize("command", [*entry.MODULES, "run", "new", "a map"])
def test_help_is_shown_and_a_map_is_applied_without_importing_jax(tmp_path, command):
    x, given = normal(0, 50, 3), [command, "--help"]
    if command == "a map":
        alignment.fit("ridge", x, x).save(tmp_path / "map.npz")
        np.save(tmp_path / "x.npy", x)
        given = ["apply", "x.npy", "--map=map.npz", "--out=mapped.npy"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-X", "importtime", "-m", "isthmus", *given]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "runpy" in modules and "jax" not in modules
    assert f"  isthmus {command} " in done.stdout or (tmp_path / "mapped.npy").exists()


def test_a_new_paper_needs_a_checkout(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(entry, "ROOT", tmp_path)
    with pytest.raises(SystemExit):
        called(monkeypatch, "new", "mine")
    assert "needs a checkout" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_module_of_the_working_folder_does_not_stand_in_the_way(tmp_path):
    (tmp_path / "common.py").write_text("raise RuntimeError('another common')")
    command = [sys.executable, "-m", "isthmus", "run", "lpl", "--config=nil", "--workdir=run"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    known = "constants, nli, word_alignment"
    sentence = f"There is no config 'nil': give the path of a file, or one of {known}.\n"
    assert (done.returncode, done.stderr) == (2, sentence)


def test_the_front_door_leads_to_the_functions(monkeypatch, tmp_path):
    assert isthmus.fit is alignment.fit and isthmus.load is alignment.load
    assert isthmus.discover is discovery.discover and isthmus.top_k is retrieval.top_k
    assert isthmus.__version__ == importlib.metadata.version("isthmus")
    assert {*isthmus.FRONT_DOOR, "encode", "__version__"} <= set(dir(isthmus))
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        isthmus.magic  # noqa: B018
    monkeypatch.setenv(packages.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(texts, "encode", lambda *given, **more: (given, more))
    expected = ("mpnet", ["land", "sea"], tmp_path), {"max_pieces": 8}
    assert isthmus.encode(("land", "sea"), "mpnet", max_pieces=8) == expected
