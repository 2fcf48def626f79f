"""Rules of the source tree, read from the sources alone. They hold for every paper, new ones too.

A paper is a folder with a main.py; nothing here lists them.
"""

import ast
import graphlib
import re
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAPERS = sorted(path.parent.name for path in ROOT.glob("*/main.py"))
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in (*PAPERS, "common", "isthmus")
    for path in sorted((ROOT / package).rglob("*.py"))
}
MAX_LEVELS = 7
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(path: Path) -> set[str]:
    """Names of the modules that a file imports anywhere; of ours, the module and not its names."""
    modules = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            modules |= names & MODULES.keys() or {node.module}
    return modules


def package(module: str) -> str:
    return module.split(".")[0]


def is_command_line(module: str) -> bool:
    return module.endswith("__main__") or any(
        isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)
        for node in tree(MODULES[module]).body
    )


def test_no_package_has_more_lines_than_contributing_says():
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    assert {"common", "isthmus", "tests"} <= dict(rows).keys()
    new = {*PAPERS} - dict(rows).keys()  # papers of a fork, which have no row, and their tests
    for name, most in rows:
        files = [x for x in (ROOT / name).rglob("*.py") if not new & {*x.relative_to(ROOT).parts}]
        lines = sum(len(path.read_text().splitlines()) for path in files)
        assert lines <= int(most.replace(",", "")), name


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_has_a_command_line_headlines_tests_and_a_config_of_each_experiment(name):
    assert is_command_line(f"{name}.main")
    assert f"{name}.headlines" in MODULES and list(ROOT.glob(f"tests/{name}/test_*.py"))
    modules = {m.split(".")[2] for m in MODULES if m.startswith(f"{name}.experiments.")}
    for module in modules:
        path = MODULES[f"{name}.experiments.{module}"]
        assert "run" in names_of(path) and " as report\n" in path.read_text(), module
    named = set()
    for path in ROOT.glob(f"configs/{name}/*.py"):
        if "def get_config()" in path.read_text():
            named.add(runpy.run_path(str(path))["get_config"]().experiment)
    assert named == modules and named


# What each package may import beside itself; a paper that is not named imports `common` alone.
BELOW = {
    "common": set(),
    "isthmus": {"common"},
    "anchor_opt": {"common", "isthmus"},
    "frontier": {"common", "isthmus", "anchor_opt"},
}


def test_packages_import_those_below_them_alone():
    every = {*PAPERS, "common", "isthmus", "tests", "benchmarks", "docs", "configs"}
    for module, path in MODULES.items():
        assert (path.parent / "__init__.py").exists(), module  # so that it is installed
        above = every - BELOW.get(package(module), {"common"}) - {package(module)}
        assert not {package(name) for name in imported(path)} & above, module


@pytest.mark.parametrize("path", sorted(ROOT.glob("configs/*/*.py")), ids=lambda path: path.stem)
def test_a_config_imports_its_own_paper_and_what_that_may_import(path):
    own = path.parent.name
    known = {own, "common", *BELOW.get(own, ())}
    for module in imported(path):
        parts = module.split(".")
        assert parts[parts[0] == "configs"] in known or parts[0] not in {*PAPERS, "configs"}, module


def test_imports_point_from_main_to_experiments_to_methods():
    for module, path in MODULES.items():
        names = imported(path)
        assert not {name for name in names & MODULES.keys() if is_command_line(name)}, module
        assert not {name for name in names if name.endswith(".headlines")}, module
        if not of_experiments(module):
            assert not {name for name in names if ".experiments." in name}, module
        if module.endswith(".main"):  # names its experiments, which are imported after the flags
            assert {package(name) for name in names} == {"common"}
            assert f"launch('{package(module)}.experiments')" in ast.unparse(tree(path))


@pytest.mark.parametrize("name", [*PAPERS, "common", "isthmus"])
def test_imports_have_no_cycle_and_few_levels(name):
    graph = {
        module: {other for other in imported(path) & MODULES.keys() if package(other) == name}
        for module, path in MODULES.items()
        if package(module) == name
    }
    chains: dict[str, list[str]] = {}
    for module in graphlib.TopologicalSorter(graph).static_order():  # raises CycleError
        below = (chains[other] for other in graph[module])
        chains[module] = [module, *max(below, key=len, default=[])]
    longest = max(chains.values(), key=len)
    assert len(longest) <= MAX_LEVELS, " -> ".join(longest)


def public(path: Path) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """The public functions and classes of a file, and the public methods of these classes."""
    for node in tree(path).body:
        if isinstance(node, FUNCTIONS | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, FUNCTIONS) and not part.name.startswith("_"):
                        yield part


def arguments(function: ast.FunctionDef) -> list[ast.arg]:
    given = function.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


@pytest.mark.parametrize("module", MODULES)
def test_public_functions_are_documented_and_their_arrays_have_shapes(module):
    assert ast.get_docstring(tree(MODULES[module])), "the module has no docstring"
    shapeless = {"jax.Array", "Array", "np.ndarray", "jnp.ndarray"}
    for node in public(MODULES[module]):
        assert ast.get_docstring(node), node.name
        if isinstance(node, FUNCTIONS):
            types = [a.annotation for a in arguments(node) if a.arg not in ("key", "keys")]
            texts = {ast.unparse(annotation) for annotation in [*types, node.returns] if annotation}
            assert not texts & shapeless, f"{node.name} has arrays without shapes"


def names_of(path: Path) -> set[str]:
    """The names that a file defines at its top."""
    functions = {node.name for node in tree(path).body if isinstance(node, FUNCTIONS)}
    assigned = [node.targets for node in tree(path).body if isinstance(node, ast.Assign)]
    return functions | {ast.unparse(target) for targets in assigned for target in targets}


def of_experiments(module: str) -> bool:
    """Whether a module is one of a paper's experiments, or builds values that all of them use."""
    return module.split(".")[1:2] in (["experiments"], ["runner"])


def test_configs_are_seen_by_experiments_alone():
    """Functions below the experiments take values, which `settings` makes of a config."""
    below = {m for m in MODULES if package(m) in PAPERS and not of_experiments(m)}
    for module in below:
        for node in ast.walk(tree(MODULES[module])):
            if isinstance(node, FUNCTIONS):
                for given in arguments(node):
                    kind = ast.unparse(given.annotation) if given.annotation else given.arg
                    assert kind != "config" and "ConfigDict" not in kind, (module, node.name)


def test_nothing_is_unpickled():
    """But for PyTorch's checkpoints, by an unpickler that knows tensors alone."""
    folders = (*PAPERS, "common", "configs", "docs", "benchmarks", "template")
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        unpicklers = {"pickle", "dill", "joblib"} & {package(name) for name in imported(path)}
        assert not unpicklers or path == MODULES["common.data.readers.torch_file"], path
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant) and not node.value.value, path


def test_flags_are_defined_where_a_command_line_begins():
    for module, path in MODULES.items():
        calls = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
        if any(".DEFINE" in ast.unparse(call.func) for call in calls):
            shared = ("common.run.cli", "common.run.launch")
            assert is_command_line(module) or module in shared, module
