"""What --help prints: the flags by their groups, the experiments, and a config file's values."""

import ast
import re
import runpy
import sys
import textwrap
from pathlib import Path

from absl import flags

WIDTH = 100


def page(doc: str, own: list[flags.Flag], package: str, config: str | None = None) -> str:
    """The help of a command line.

    Args:
      doc: the docstring of its main module.
      own: its flags.
      package: whose config files are listed.
      config: path of a config file, whose values are listed; None: the files that there are.

    Returns:
      Text of at most WIDTH columns.
    """
    parts = [doc.strip(), _listed("Flags", {_shown(flag): _said(flag) for flag in own})]
    if config:
        parts += _values(Path(config))
    elif any(flag.name == "config" for flag in own):
        parts += _experiments(Path("configs") / package)
    return "\n\n".join(parts)


def comments(text: str) -> dict[str, str]:
    """The comments behind the values that a config file's source sets: name -> comment.

    A value is found by its name, `algorithm1.steps` say, and by that of the function that sets it
    before it, `bootstrap.neighbours`, for values that a function makes a group of.
    """
    found = {}
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef):
            for line in text.splitlines()[function.lineno : function.end_lineno]:
                if match := re.match(r" +config\.([\w.]+) = .*?  # (.*)", line):
                    found[match[1]] = found[f"{function.name}.{match[1]}"] = match[2]
    return found


def _experiments(folder: Path) -> list[str]:
    """The config files of a package, with the first lines of their docstrings."""
    files = {path: ast.parse(path.read_text()) for path in sorted(folder.glob("*.py"))}
    found = {
        path.name: ast.get_docstring(tree).split("\n")[0]
        for path, tree in files.items()
        if any(getattr(node, "name", "") == "get_config" for node in tree.body)
    }
    if not found:
        return []
    return [
        _listed(f"Experiments, files of {folder}", found),
        "The values of a file, with their comments: --config=FILE --help. Flags of libraries too: "
        "--helpfull.",
    ]


def _values(path: Path) -> list[str]:
    """A paragraph for each group of a config file's values."""
    config = runpy.run_path(str(path))["get_config"]().to_dict()
    said = comments(path.read_text())
    for name, module in list(sys.modules.items()):
        shared = name.startswith("configs.") or name.endswith(".defaults")
        if shared and module.__file__:
            for key, comment in comments(Path(module.__file__).read_text()).items():
                said.setdefault(key, comment)
    quick = config.pop("when_quick", {})
    groups = _grouped(config, said)
    lists = [_listed(f"Values of {path}, each --config.NAME=VALUE", groups.pop(""))]
    lists += [_listed(name.rstrip("."), values) for name, values in groups.items()]
    less = {line: "" for values in _grouped(quick, {}).values() for line in values}
    return [*lists, _listed("With --config.quick", less)]


def _grouped(values: dict, said: dict[str, str], prefix: str = "") -> dict[str, dict[str, str]]:
    """Group -> `name=value` -> comment; a group is what stands before a nested value's last dot."""
    found: dict[str, dict[str, str]] = {prefix: {}}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            found |= _grouped(value, said, f"{name}.")
        else:
            found[prefix][f"{name}={_text(value)}"] = said.get(name, "")
    return {group: lines for group, lines in found.items() if lines}


def _text(value) -> str:
    """A value as it is given as a flag."""
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _shown(flag: flags.Flag) -> str:
    if flag.boolean:
        return f"--[no]{flag.name}"
    return f"--{flag.name}" + (f"={_text(flag.default)}" if flag.default else "")


def _said(flag: flags.Flag) -> str:
    return flag.help.split(";\n")[0]  # absl adds that a flag may be repeated, as ours say too


def _listed(title: str, lines: dict[str, str]) -> str:
    """A title and lines of name and explanation, the explanations below each other."""
    column = min(36, 4 + max(map(len, lines)))
    found = []
    for name, text in lines.items():
        wrapped = textwrap.wrap(" ".join(text.split()), WIDTH - column) or [""]
        first = f"  {name}".ljust(column)
        if len(name) > column - 4 and wrapped[0]:
            found.append(first.rstrip())
            first = " " * column
        found.append((first + wrapped[0]).rstrip())
        found += [" " * column + line for line in wrapped[1:]]
    return "\n".join([f"{title}:", *found])
