"""What the pages show is run by CI (`<!-- CI: NAME -->`), run here, or at least exists.

Blocks marked `<!-- not run: REASON -->` need data that are not here; their modules, flags, config
files and config values have to exist.
"""

import json
import re
import runpy
import shlex
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from common.run import launch, settings
from isthmus.commands import MODULES, PAPERS, configs
from tests.samples import rotated_spaces

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "RESULTS.md")]
PAGES += sorted(ROOT.glob("docs/**/*.md"))
BLOCK = re.compile(r"(?:<!-- (CI|not run): (.+?) -->\n)?```(\w+)\n(.*?)```", flags=re.S)
BY_TESTS = {"fork"}  # tests/test_fork.py


def blocks(page: Path) -> list[tuple[str, str, str, str]]:
    """(mark, name or reason, language, text) of the blocks of a page."""
    return BLOCK.findall(page.read_text())


def test_ci_runs_the_named_blocks_of_the_readme():
    named = {name for mark, name, _, _ in blocks(PAGES[0]) if mark == "CI"}
    called = set(re.findall(r"\$\(readme (\w+)\)", (ROOT / ".ci/run").read_text()))
    assert named == called | BY_TESTS


def test_the_readme_names_all_papers_and_help_all_configs():
    section = PAGES[0].read_text().partition("\n## What is here\n")[2].partition("\n## ")[0]
    for paper in PAPERS:
        assert re.search(rf"^\| `{paper}` \|", section, re.M)
        files = ROOT.glob(f"configs/{paper}/*.py")
        there = {path.stem for path in files if "def get_config" in path.read_text()}
        lines = [re.fullmatch(r"  --config=(\w+) +(\S.*\.)", x) for x in configs(paper)]
        assert {line[1] for line in lines} == there


def test_what_examples_import_exists():
    """Also in blocks that CI runs or that nothing runs: a moved module is seen at once."""
    for language, text in (block[2:] for page in PAGES for block in blocks(page)):
        for line in re.findall(r"^(?:from|import) .*", text if language == "python" else "", re.M):
            if find_spec(line.split()[1].split(".")[0]):  # peers' packages may be missing
                exec(line, {})


@pytest.mark.slow
def test_python_examples_run(tmp_path, monkeypatch):
    """On two noisy copies of one space, of which the first twelve rows are known pairs."""
    source, target, truth = rotated_spaces()
    target = np.concatenate([target[truth], np.delete(target, truth, axis=0)])
    given = {"source": source, "target": target, "pairs": np.stack([np.arange(12)] * 2, axis=1)}
    given["new_source_vectors"] = source[:3] + 0.01
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    for page in PAGES:
        names = dict(given)  # blocks of a page continue each other
        for mark, _, language, text in blocks(page):
            if language == "python" and not mark:
                exec(text, names)
                assert "mapped" not in text or names["mapped"].shape == (3, 16)
                assert all(Path(path).exists() for path in re.findall(r'savefig\("(.+?)"\)', text))


@pytest.mark.network
@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = {}
    for cell in json.loads((ROOT / "docs/two_spaces.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["right"].mean() > 0.95 and (tmp_path / "glove_to_word2vec.npz").exists()


def test_commands_that_are_not_run_have_valid_flags():
    every = (block for page in PAGES for block in blocks(page))
    text = "\n".join(text for mark, _, kind, text in every if kind == "sh" and mark != "CI")
    text = re.sub(r"^isthmus (\w+)", lambda m: f"python -m {MODULES[m[1]]}", text, flags=re.M)
    for command in re.findall(r"python -m (.*)", text.replace("\\\n", " ")):
        module, *words = shlex.split(command.split("#")[0])
        flags = dict(word[2:].partition("=")[::2] for word in words if word.startswith("--"))
        if "config" not in flags:
            source = ROOT / module.replace(".", "/")
            source = source / "__main__.py" if source.is_dir() else source.with_suffix(".py")
            text = source.read_text()
            if "define_form_flags()" in text:
                text += (ROOT / "common/run/cli.py").read_text()
            if "from docs.check import" in text:  # flags of several commands
                text += (ROOT / "docs/check.py").read_text()
            defined = re.findall(r"DEFINE_\w+\(\s*\"(\w+)\"", text)
            assert flags.keys() <= set(defined), command
            continue
        config = runpy.run_path(str(ROOT / flags.pop("config")))["get_config"]()
        launch.experiment(module.replace(".main", ".experiments"), config.experiment)
        for name in flags.keys() - {"workdir", "distributed"}:
            assert name.removeprefix("config.") in settings.flat(config.to_dict()), command


def test_links_lead_somewhere():
    for page in PAGES:
        text = page.read_text()
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, heading = target.partition("#")
            if "://" in target:
                continue
            there = page.parent / path if path else page
            assert there.exists(), (page, target)
            assert not heading or heading in headings(there.read_text()), (page, target)
        for path in re.findall(r"`((?:configs|docs|common|benchmarks|tests)/[\w/]+\.\w+)`", text):
            made = "my_paper" in path or path == "docs/results/rows.csv"  # of the site
            assert made or (ROOT / path).exists(), (page, path)


def test_pages_that_the_code_names_exist():
    for path in [*ROOT.glob("*/**/*.py"), *ROOT.glob("*.py")]:
        for page in re.findall(r"\bdocs/[\w/]+\.md\b", path.read_text()):
            assert "my_paper" in page or (ROOT / page).exists(), f"{path}: {page}"


def headings(text: str) -> set[str]:
    """Names of a page's headings in links."""
    titles = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in titles}


def test_every_figure_is_shown():
    text = "".join(page.read_text() for page in PAGES)
    for path in (ROOT / "docs/figures").rglob("*.png"):
        assert f"figures/{path.parent.name}/{path.name}" in text, path
