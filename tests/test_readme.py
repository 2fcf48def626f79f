"""What the pages show is run; what would take hours or data that are not here is at least there.

A block is run here unless `<!-- CI: NAME -->` stands before it, so that .ci/run runs it as it
stands, or `<!-- not run: REASON -->`. Of both, modules, flags, config files and values have to
exist.
"""

import ast
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from anchor_opt import defaults

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "RESULTS.md")]
PAGES += [ROOT / "docs" / name for name in ("own_vectors.md", "new_paper.md", "notes.md")]
BLOCK = re.compile(r"(?:<!-- (?:CI|not run): (.+?) -->\n)?```(\w+)\n(.*?)```", flags=re.S)
TOY = ROOT / "docs/new_paper.md"


def blocks(language: str, run: bool, pages=tuple(PAGES)) -> list[tuple[str, str]]:
    """(page, text) of the blocks that are run, or of those that are not."""
    return [
        (page.name, text)
        for page in pages
        for reason, name, text in BLOCK.findall(page.read_text())
        if name == language and run is not bool(reason)
    ]


@pytest.fixture
def names():
    """What the Python blocks take for given; of the sizes of test_api.py, which compiles them."""
    rng = np.random.default_rng(0)
    source = rng.normal(size=(240, 12)) * np.linspace(2, 0.5, 12)
    rotation = np.linalg.qr(rng.normal(size=(16, 16)))[0][:12]
    target = rng.normal(size=(260, 16)) * 0.3
    target[:240] = source @ rotation + 0.05 * rng.normal(size=(240, 16))
    pairs = np.stack([np.arange(12)] * 2, axis=1)
    new = {"new_source_vectors": source[:3] + 0.01}
    return new | {"source": source, "target": target, "pairs": pairs}


def small():
    config = configured()
    config.bootstrap.search_words = 200
    return config


configured = defaults.config


@pytest.mark.parametrize("page", ["README.md", "own_vectors.md"])
def test_the_python_examples_run(page, names, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(defaults, "config", small)
    mine = [text for name, text in blocks("python", run=True) if name == page]
    assert mine
    for text in mine:
        exec(text, names)
    assert names["mapped"].shape == (3, 16)
    if page == "README.md":
        assert "False" in capsys.readouterr().out  # it did not fail
        assert (names["found"].anchors[:100, 0] == names["found"].anchors[:100, 1]).all()


def test_commands_that_are_not_run_would_parse():
    found = [text for _, text in blocks("sh", run=False)]
    assert len(found) > 5
    for command in re.findall(r"python -m (.*)", "\n".join(found).replace("\\\n", " ")):
        module, *words = shlex.split(command.split(" && ")[0])
        path = ROOT / f"{module.replace('.', '/')}.py"
        flags = dict(word.removeprefix("--").split("=", 1) for word in words if "=" in word)
        flags |= dict.fromkeys(word.removeprefix("--") for word in words if "=" not in word)
        own = re.findall(r"DEFINE_\w+\(\s*\"(\w+)\"", path.read_text())
        config = {}
        if "config" in flags:
            config = runpy.run_path(str(ROOT / flags["config"]))["get_config"]()
            assert config.experiment in experiments(module.split(".")[0]), command
        for name in flags:
            if name.startswith("config."):
                assert name.removeprefix("config.") in flat(config), name
            else:
                assert name in own, f"{module} has no flag {name}"


def test_ci_runs_every_named_block_of_the_readme():
    named = re.findall(r"<!-- CI: (\w+) -->", PAGES[0].read_text())
    scripts = "".join((ROOT / ".ci" / name).read_text() for name in ("run", "newcomer"))
    called = re.findall(r"\.ci/readme ([\w ]+)", scripts)
    assert sorted(named) == sorted(" ".join(called).split())
    assert "not run" not in PAGES[0].read_text()


def experiments(package: str) -> str:
    """The source of a package's table of experiments."""
    return (ROOT / package / "experiments.py").read_text()


def flat(config, prefix=""):
    for key, value in config.items():
        yield f"{prefix}{key}"
        if hasattr(value, "items"):
            yield from flat(value, f"{prefix}{key}.")


@pytest.fixture(scope="module")
def fork(tmp_path_factory):
    """A copy of what a new paper needs, with the README's lines run in it; what they printed."""
    root = tmp_path_factory.mktemp("fork")
    shutil.copytree(ROOT / "common", root / "common", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "anchor_opt").mkdir()
    shutil.copy(ROOT / "anchor_opt/main.py", root / "anchor_opt")
    toy = re.findall(r"`([\w/]+\.py)`\n\n```py\n(.*?)```", TOY.read_text(), flags=re.S)
    assert len(toy) == 4
    for path, text in toy:
        (root / "toy" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "toy" / path).write_text(text)
    editor = root / "editor"
    editor.write_text('#!/bin/sh\ncp "toy/$1" "$1"\n')
    editor.chmod(0o755)
    ((_, lines),) = blocks("sh", run=True, pages=PAGES[:1])
    assert len(lines.splitlines()) <= 10
    environment = os.environ | {"EDITOR": "./editor", "PYTHONPATH": ""}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-eu"], input=lines, cwd=root, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return root, done.stdout


def test_a_new_paper_in_ten_lines(fork):
    root, printed = fork
    assert "nearest mean" in printed and "±" in printed
    assert (root / "runs/mine/table.md").read_text().strip() in printed
    assert len(list((root / "runs/mine/parts").iterdir())) == 3


def test_the_toy_papers_own_test(fork, monkeypatch):
    root, _ = fork
    monkeypatch.syspath_prepend(root)
    runpy.run_path(str(root / "tests/my_paper/test_method.py"))["test_it_is_scikit_learns"]()


def test_the_toy_paper_is_as_the_other_papers():
    for _, text in blocks("py", run=True, pages=(TOY,)):
        tree = ast.parse(text)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("test"):
                assert ast.get_docstring(node), node.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text()
    base = ROOT if page.name == "notes.md" else page.parent  # the notes become RESULTS.md
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        there = (base / path) if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there.read_text()), target
    for path in re.findall(r"`((?:configs|docs|common|benchmarks|tests)/[\w/]+\.\w+)`", text):
        assert "my_paper" in path or (ROOT / path).exists(), path


def anchors(text: str) -> set[str]:
    """Names of a page's headings in links."""
    headings = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_figure_is_shown():
    shown = set(re.findall(r"docs/figures/[\w/.-]+\.png", PAGES[0].read_text()))
    shown |= set(re.findall(r"docs/figures/[\w/.-]+\.png", PAGES[2].read_text()))
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "docs/figures").rglob("*.png")}
    assert shown == there


def test_the_readme_is_short():
    assert len(PAGES[0].read_text().splitlines()) < 200
