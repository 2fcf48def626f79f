"""The command line that all packages share."""

import errno
import importlib
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest
from absl.testing import flagsaver

import common
from common.data import packages
from common.errors import UserError
from common.run import cli, compilations
from tests import commands

MAIN = '''"""The experiment of this test."""
from common.run.launch import launch
if __name__ == "__main__":
    launch("paper.experiments")
'''
EXPERIMENTS = {
    "one": 'def run(config, work, cache):\n    print(f"{config.steps} steps")\n',
    "two": "import jax\ndef run(config, work, cache):\n"
    '    print(f"{jax.jit(lambda x: x + 1)(1)} ± .1 語 is computed")\n',
}
CONFIG = """
from ml_collections import ConfigDict
def get_config():
    return ConfigDict({"experiment": "one", "steps": 3, "rates": {"first": 0.5},
        "pairs": ("a:b",)})
"""


def write(folder):
    """Writes a paper of three experiments."""
    (folder / "main.py").write_text(MAIN)
    (folder / "configs/paper").mkdir(parents=True, exist_ok=True)
    for name in ("config.py", "configs/paper/mine.py"):
        (folder / name).write_text(CONFIG)
    for name, text in {"__init__": "", **EXPERIMENTS}.items():
        path = folder / "paper/experiments" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def launch(folder, *arguments, **variables):
    """Runs the paper in another process."""
    write(folder)
    paths = os.pathsep.join(sys.path)
    return subprocess.run(
        [sys.executable, folder / "main.py", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths} | variables,
        input="",
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Runs the paper in this process, and returns its exit code and what it printed."""
    write(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield lambda *arguments: (commands.run(monkeypatch, "main", *arguments), *capsys.readouterr())
    for name in [name for name in sys.modules if name.partition(".")[0] == "paper"]:
        del sys.modules[name]


@pytest.fixture
def ended(monkeypatch, capsys):
    """Runs a function as a command with one argument or none; its exit code and messages."""

    def ended(main, *arguments):
        monkeypatch.setattr(sys, "argv", ["run", *arguments])
        with flagsaver.flagsaver(), pytest.raises(SystemExit) as end:
            cli.run(lambda argv: main())
        return end.value.code, capsys.readouterr().err.splitlines()

    return ended


MINE = "--config=configs/paper/mine.py"


QUOTED = f"""{MINE} '--config.pairs=('"'"'$c'"'"',)'"""
FIVE = "--config=../config.py --config.steps=5"
LONG = f"--config.pairs={'c:d,' * 80}c:d"
KEPT = [  # arguments, what is printed, and the arguments that are kept
    (["--config", "mine"], "3 steps\n", MINE),
    (["--config=../config.py", "--config.steps", "5"], "5 steps\n", FIVE),
    (["--config=mine", "--config.pairs=c:d"], "3 steps\n", f"{MINE} --config.pairs=c:d"),
    (["--config=mine", "--config.pairs=('$c',)"], "3 steps\n", QUOTED),
    (["--config=mine", LONG], "3 steps\n", f"{MINE} {LONG}"),  # longer than a path may be
]


@pytest.mark.parametrize(("arguments", "out", "kept"), KEPT)
def test_a_run_from_any_folder_keeps_its_command_as_a_shell_reads_it(
    call, tmp_path, monkeypatch, arguments, out, kept
):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    code, shown, _ = call("--workdir=run", *arguments)
    assert not code and shown == out
    assert Path("run/command.txt").read_text() == f"python -m paper.main {kept}\n"
    config = json.loads(Path("run/config.json").read_text())
    assert config["steps"] == int(out[0]) and config["rates"] == {"first": 0.5}
    given = [word for word in arguments if word.startswith("--config.pairs=")]
    assert shlex.split(kept)[1:] == given or not given


@pytest.mark.slow
def test_a_device_that_is_not_there_is_one_sentence(tmp_path):
    done = launch(tmp_path, "--config=config.py", "--workdir=run", JAX_PLATFORMS="cuda")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "JAX finds no device for JAX_PLATFORMS='cuda' (" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("programs", ["", "elsewhere"])
def test_a_run_its_config_and_compiled_programs_may_be_in_the_home_folder(
    tmp_path, monkeypatch, programs
):
    """Programs are in the cache folder, unless JAX's variable names another.

    There those that were not used for months are deleted. Of the table, the terminal has not all
    characters.
    """
    own = tmp_path / "home/cache/programs"
    own.mkdir(parents=True)
    for name, days in (("old", 61), ("new", 59)):
        (own / name).touch()
        os.utime(own / name, times=(time.time() - days * 86_400,) * 2)
    (tmp_path / "home/mine.py").write_text(CONFIG)
    places = {"HOME": str(tmp_path / "home"), "ISTHMUS_CACHE": "~/cache"}
    places["PYTHONIOENCODING"] = "ascii"
    places["JAX_COMPILATION_CACHE_DIR"] = programs and str(tmp_path / programs)
    monkeypatch.delenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", raising=False)
    config = "--config=~/mine.py", "--config.experiment=two", "--workdir=~/r"
    done = launch(tmp_path, *config, **places)
    assert done.stdout == "2 ? .1 ? is computed\n", done.stderr
    assert (tmp_path / "home/r/config.json").exists() and not list(tmp_path.rglob("~"))
    assert not (own / "old").exists() and (own / "new").exists()
    assert bool(programs) != (len(list(own.iterdir())) > 1)
    assert not programs or any((tmp_path / programs).iterdir())


def test_the_oldest_programs_beyond_some_gigabytes_are_deleted(tmp_path, monkeypatch, ended):
    (tmp_path / "programs").mkdir()
    for day, name in enumerate("abc"):
        (tmp_path / "programs" / name).write_bytes(b"x" * 10)
        os.utime(tmp_path / "programs" / name, times=(time.time() - day * 86_400,) * 2)
    monkeypatch.setattr(compilations, "PROGRAM_BYTES", 25)
    monkeypatch.setenv(packages.CACHE_VARIABLE, str(tmp_path))
    ended(lambda: None)
    assert sorted(path.name for path in (tmp_path / "programs").iterdir())[:2] == ["a", "b"]
    assert not (tmp_path / "programs/c").exists()


LEVEL = "--xla_gpu_autotune_level=4"
ON_GPU = [("xla_cuda13", None, compilations.GPU_FLAGS), ("xla_cuda13", LEVEL, LEVEL)]


@pytest.mark.parametrize(
    "plugin, given, expected", [*ON_GPU, ("another", None, None), (None, None, None)]
)
def test_programs_for_gpus_are_compiled_at_once(tmp_path, monkeypatch, plugin, given, expected):
    monkeypatch.setenv("XLA_FLAGS", given or "")
    if not given:
        monkeypatch.delenv("XLA_FLAGS")
    plugins = {f"jax_plugins.{plugin}"} | ({"jax_plugins"} if plugin else set())
    monkeypatch.setattr(compilations, "find_spec", plugins.__contains__)
    compilations.compile_for_gpu_at_once()
    assert os.environ.get("XLA_FLAGS") == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--config=config.py --config.stepz=5", "no value 'stepz': did you mean 'steps'?"),
        ("--config=config.py --config.frist=1", "no value 'frist': did you mean 'rates.first'"),
        ("--config=config.py --noconfig.zzz", "no value 'zzz': its file has all names."),
        ("--config=config.py --config.steps=many", "steps"),
        ("--config=none.py", "no config 'none.py': give the path of a file, or one of mine."),
        ("--config=config.py --config.experiment=four", "no experiment 'four': choose one of one"),
        ("--config=config.py steps=5", "'steps=5' is not a flag"),
        ("--config=config.py --config.experiment=/dev/null", "/dev/null can be read once"),
        ("", "--config"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(call, tmp_path, arguments, message):
    code, _, error = call("--workdir=run", *arguments.split())
    assert code and message in error and "Traceback" not in error
    assert not (tmp_path / "run").exists()


def test_a_tilde_in_an_argument_is_the_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    words = ["~/x", "--out=~/x", "--config.pairs=~/a.npz:~/b.npz,~/c.npz", "--out=a~/x~"]
    monkeypatch.setattr(sys, "argv", ["run", *words])
    monkeypatch.setattr(cli.app, "run", lambda *_, **__: None)
    cli.run(lambda argv: None)
    expected = [word.replace("~", "/home/me") for word in words[:3]]
    assert sys.argv[1:] == [*expected, words[3]]


def test_a_path_that_is_not_on_this_machine_is_one_sentence(ended):
    for word in ("--workdir=gs://bucket/run", "s3://a.vec", "--config.source=a.vec:file:///b"):
        code, (line,) = ended(lambda: None, word)
        assert code == 2 and "is the address" in line


FULL = OSError(errno.ENOSPC, "No space left on device", "/run/a.json")
SENTENCES = [
    (UserError("The file\nx is missing."), "The file x is missing."),
    (OSError(errno.ENAMETOOLONG, "File name too long", "a" * 300), "'aaa"),
    (FULL, "Cannot read or write /run/a.json (No space left on device): make room or choose a "),
    (KeyboardInterrupt(), "Interrupted: run the same command again to resume."),
]


@pytest.mark.parametrize(("error", "sentence"), SENTENCES)
def test_errors_of_a_run_are_one_sentence(ended, error, sentence):
    def main():
        raise error

    code, lines = ended(main)
    assert code == 2 and lines[-1].startswith(sentence) and lines[-1].endswith(".")


def test_matrix_products_have_full_precision():
    with jax.default_matmul_precision("default"):
        importlib.reload(common)
    assert jax.config.jax_default_matmul_precision == "highest"
