"""What the README and CONTRIBUTING promise of the tree, read from the sources alone."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAPERS = sorted(path.parent.name for path in ROOT.glob("*/main.py"))
SOURCES = sorted(
    path.relative_to(ROOT) for name in (*PAPERS, "common") for path in (ROOT / name).rglob("*.py")
)
MOST_LINES = 300
LONG = {
    "common/alignment.py": "an aligner is one object: fit, apply, inverse, save and load",
    "common/data/vectors.py": "one reader of all forms of vectors, and what is wrong with each",
    "common/ot.py": "small and streamed transport share their cost and their weights",
}
# Flags are defined where a command line begins.
ENTRIES = [f"{name}/main.py" for name in PAPERS] + ["anchor_opt/align.py", "common/encode.py"]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text())


def imported(path: Path) -> set[str]:
    """Modules that a file imports anywhere, `from a import b` as a and a.b."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def public(path: Path):
    """The public functions and classes of a file, and the public methods of these classes."""
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
                        yield part


def test_the_four_papers_are_seen():
    assert PAPERS == ["anchor_opt", "embed_match", "lpl", "wasserstein_embed"]
    assert len(SOURCES) > 90


@pytest.mark.parametrize("name", [*PAPERS, "common"])
def test_papers_import_common_alone_and_common_no_paper(name):
    strangers = {*PAPERS, "tests", "benchmarks", "docs", "configs"} - {name}
    for path in (path for path in SOURCES if path.parts[0] == name):
        assert not {module.split(".")[0] for module in imported(path)} & strangers, path


@pytest.mark.parametrize("name", PAPERS)
def test_configs_know_their_own_paper_alone(name):
    for path in ROOT.glob(f"configs/{name}/*.py"):
        for module in imported(path.relative_to(ROOT)):
            parts = module.split(".")
            assert parts[0] not in PAPERS or parts[0] == name, path
            assert parts[0] != "configs" or parts[1] == name, path


@pytest.mark.parametrize("name", PAPERS)
def test_main_sees_experiments_alone_and_nothing_sees_main(name):
    own = {module for module in imported(Path(name) / "main.py") if module.startswith(name)}
    assert own == {name, f"{name}.experiments"}
    for path in (path for path in SOURCES if path.parts[0] == name and path.stem != "main"):
        wrong = {f"{name}.main", f"{name}.experiments"}
        assert not imported(path) & wrong, f"{path} imports upwards"


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_what_is_public_is_documented(path):
    assert ast.get_docstring(tree(path)), path
    for node in public(path):
        assert ast.get_docstring(node), f"{path}: {node.name}"
        if isinstance(node, ast.FunctionDef):
            assert not list(shapeless(node)), f"{path}: {node.name} has arrays without shape"


@pytest.mark.parametrize("name", PAPERS)
def test_what_to_read_first_is_there(name):
    files = re.findall(r"\w+\.py", ast.get_docstring(tree(Path(name) / "__init__.py")))
    assert len(files) > 5
    for file in files:
        assert (ROOT / name / file).exists(), file


def shapeless(function: ast.FunctionDef):
    """Arrays annotated without their shape; keys of random numbers have none."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    for argument in arguments:
        if argument.annotation is not None and argument.arg not in ("key", "keys"):
            text = ast.unparse(argument.annotation)
            if text in ("jax.Array", "Array", "np.ndarray", "jnp.ndarray"):
                yield f"{argument.arg}: {text}"
    if function.returns is not None:
        text = ast.unparse(function.returns)
        if text in ("jax.Array", "Array", "np.ndarray", "jnp.ndarray"):
            yield f"-> {text}"


def test_files_are_short():
    folders = (ROOT / name for name in ("benchmarks", "configs", "docs"))
    others = (path for folder in folders for path in folder.rglob("*.py"))
    paths = [*SOURCES, *(path.relative_to(ROOT) for path in others)]
    lines = {str(path): len((ROOT / path).read_text().splitlines()) for path in paths}
    assert {path for path, count in lines.items() if count > MOST_LINES} == LONG.keys()


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_nothing_is_read_from_beside_the_code_or_unpickled(path):
    assert not {module.split(".")[0] for module in imported(path)} & {"pickle", "dill", "joblib"}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Name):
            assert node.id != "__file__", f"{path} reads from beside itself"
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert node.value.value is False, f"{path} unpickles"


def test_flags_are_defined_where_a_command_line_begins():
    for path in SOURCES:
        calls = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
        names = [ast.unparse(call.func) for call in calls]
        if any(name.startswith(("flags.DEFINE", "config_flags.DEFINE")) for name in names):
            assert str(path) in ENTRIES, path
