"""A new paper, made in a copy of the whole tree by the README's lines alone, is complete.

It passes lint and the architecture tests, it runs, and its numbers reach the documentation without
an edit of any file that is not its own.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
IGNORED = (".git", ".venv", "build", "runs", "*.npz", "*_cache", "__pycache__", "*.egg-info")

OWN_PACKAGE = """
from common.data.packages import Package

TINY = Package(filename="tiny-data-1.0.tgz", sha256="", licence="CC0", source="a made-up set")
PACKAGES = (TINY,)
"""


@pytest.fixture(scope="module")
def fork(tmp_path_factory):
    """The copy, with the README's lines run in it, and what they printed."""
    root = tmp_path_factory.mktemp("fork") / "tree"
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*IGNORED))
    readme = (ROOT / "README.md").read_text()
    (lines,) = re.findall(r"<!-- CI: fork -->\n```sh\n(.*?)```", readme, flags=re.S)
    assert len(lines.splitlines()) <= 10
    return root, run(root, "sh", "-euc", lines)


def run(root, *command):
    """What a command prints; the interpreter of the tests is the first `python` of its path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_runs_and_prints_its_table_and_a_help_of_its_own(fork):
    root, printed = fork
    table = (root / "runs/mine/table.md").read_text().strip()
    assert "nearest mean" in table and "±" in table and table in printed
    assert len(list((root / "runs/mine/parts").iterdir())) == 3
    command = [sys.executable, "-m", "my_paper.main", "--help"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert "my paper" in done.stdout and "anchor" not in done.stdout


def test_it_passes_lint_the_architecture_tests_and_its_own(fork):
    root, _ = fork
    run(root, "python", "-m", "ruff", "format", "--check", ".")
    run(root, "python", "-m", "ruff", "check", ".")
    tests = ("tests/test_architecture.py", "tests/my_paper")
    printed = run(root, "python", "-m", "pytest", "-n", "0", "-vv", *tests)
    assert "[my_paper]" in printed and "test_method.py" in printed


def test_pages_are_what_the_records_say_and_its_results_reach_them(fork, monkeypatch, tmp_path):
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path))
    root, _ = fork
    run(root, "python", "-m", "docs.render", "--check")  # before a run of the new paper is kept
    (root / "my_paper/__init__.py").write_text(f'"""A paper with data."""\n{OWN_PACKAGE}')
    for words in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm mine"):
        run(root, "git", *words.split())
    name = "my_paper/main_table"
    run(root, "isthmus", "run", "my_paper", "--config=main_table", "--workdir=runs/whole")
    run(root, "python", "-m", "docs.keep", "runs/whole", name)
    run(root, "python", "-m", "docs.check", name, "--run=runs/quick", "--accept=a new config")
    run(root, "python", "-m", "docs.render")
    (headline,) = re.findall(r".*`my_paper`.*accuracy.*", (root / "README.md").read_text())
    table = (root / "runs/whole/table.md").read_text().partition("\n\n")[2].strip()
    assert headline.split("|")[4].strip() in table
    assert re.search(
        r"\| `tiny-data` 1\.0 +\| a made-up set +\| CC0 ", (root / "docs/data.md").read_text()
    )
    assert table in (root / "docs/results/my_paper.md").read_text()
    assert "holds" in (root / "docs/results/runs.md").read_text().partition(name)[2]
