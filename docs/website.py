"""The pages of the site (mkdocs.yml): those of the repository, and a reference of its modules.

Pages keep their paths in the repository, so that their links lead to the same places on the site.
"""

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePath
from urllib.parse import unquote, urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from common.run import records
from isthmus import FRONT_DOOR
from isthmus.commands import PAPERS

ROOT = Path(__file__).parents[1]
NOTEBOOK = "docs/two_spaces.ipynb"
NOTEBOOK_PAGE = NOTEBOOK.replace(".ipynb", ".md")
GUIDES = {
    "Your own vectors": "docs/own_vectors.md",
    "Two word spaces, a notebook": NOTEBOOK_PAGE,
    "Maps in your own stack": "docs/vector_stores.md",
    "Ahead of the published methods": "docs/frontier.md",
    "Plots of the recorded results": "docs/plotting.md",
    "Devices and hosts": "docs/scaling.md",
    "Accelerators": "docs/accelerators.md",
    "Contributing": "CONTRIBUTING.md",
    "What has been tried against faults": "tests/faults/README.md",
    "Changes": "CHANGELOG.md",
}
FILES = ("*.md", "CITATION.cff", NOTEBOOK, "tests/faults/README.md", "docs/**/*.md")
FILES += ("docs/figures/**/*.png", "benchmarks/**/*.md", "benchmarks/results/*.json")
ROWS = "docs/results/rows.csv"  # the rows of all records, made for the site


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Takes the files of the repository in the place of those of the folder `docs`.

    The style sheets and scripts of the theme, which are in another folder, stay.
    """
    theme = [file for file in files if file.src_dir != config.docs_dir]
    found = sorted({path for pattern in FILES for path in ROOT.glob(pattern)})
    site = Files([*theme, *(_copied(str(path.relative_to(ROOT)), config) for path in found)])
    table = records.frame(ROOT / "docs/results").to_csv(index=False)
    site.append(File.generated(config, ROWS, content=table))
    written = {NOTEBOOK_PAGE: notebook((ROOT / NOTEBOOK).read_text())} | dict(reference())
    for path, text in written.items():
        site.append(File.generated(config, path, content=text))
    pages = [file.src_uri for file in site.documentation_pages()]
    config.nav = [
        {"isthmus": "README.md"},
        {"Guides": [{title: path} for title, path in GUIDES.items()]},
        {"Results": ["RESULTS.md", *(p for p in pages if p.startswith("docs/results/"))]},
        {"Benchmarks": [path for path in pages if path.startswith("benchmarks/")]},
        {"Reference": _sections([PurePath(p) for p in written if p.startswith("reference/")])},
    ]
    return site


def on_post_build(config: MkDocsConfig) -> None:
    """Ends the build with an error if a page refers to a file that was not built."""
    site = Path(config.site_dir)
    missing = [
        f"{page.relative_to(site)} refers to {path}"
        for page in sorted(site.rglob("*.html"))
        for path in _References(page.read_text()).paths
        if not _target(site, page, path).exists()
    ]
    if missing:
        raise PluginError(f"{len(missing)} missing files: " + "; ".join(missing[:5]))


class _References(HTMLParser):
    """The local paths of a page: `href` and `src` of all its elements."""

    def __init__(self, text: str):
        super().__init__()
        self.paths: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Adds those of an element."""
        for name, value in attrs:
            parts = urlsplit(value or "")
            if name in ("href", "src") and not parts.scheme and not parts.netloc and parts.path:
                self.paths.add(unquote(parts.path))


def _target(site: Path, page: Path, path: str) -> Path:
    """The file that a path of a page names; a path from the root begins at the site."""
    return site / path.lstrip("/") if path.startswith("/") else page.parent / path


def _copied(path: str, config: MkDocsConfig) -> File:
    return File(path, str(ROOT), config.site_dir, config.use_directory_urls)


def reference() -> Iterator[tuple[str, str]]:
    """Path and text of a page for the front door, and for each module of mathematics and data."""
    names = ["isthmus.encode", *(f"{module}.{name}" for name, module in FRONT_DOOR.items())]
    heading = "    options:\n      show_root_heading: true"
    front = "\n\n".join(f"::: {name}\n{heading}" for name in names)
    yield "reference/isthmus.md", f"# isthmus\n\n{front}\n"
    for package in ("common", "isthmus", *PAPERS):
        for path in sorted((ROOT / package).rglob("*.py")):
            module = path.relative_to(ROOT).with_suffix("")
            if path.stem.startswith("_") or {"experiments", "reports"} & {*module.parts}:
                continue
            name = ".".join(module.parts)
            yield f"reference/{module}.md", f"# {name}\n\n::: {name}\n"


def _sections(pages: list[PurePath], depth: int = 1) -> list:
    """Pages in the folders that they are in."""
    here = [{page.stem: str(page)} for page in pages if len(page.parts) == depth + 1]
    folders = dict.fromkeys(page.parts[depth] for page in pages if len(page.parts) > depth + 1)
    return here + [
        {name: _sections([p for p in pages if p.parts[depth] == name], depth + 1)}
        for name in folders
    ]


def notebook(text: str) -> str:
    """Markdown of a notebook: its cells, and what they have printed and drawn."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            if image := output.get("data", {}).get("image/png"):
                parts.append(
                    f"![What the cell draws](data:image/png;base64,{''.join(image).strip()})"
                )
            elif output.get("name") == "stdout":
                parts.append(f"```text\n{''.join(output['text'])}```")
    return "\n\n".join(parts)
