"""The pages of the site (mkdocs.yml): those of the repository, and a reference of its modules.

Pages keep their paths in the repository, so that their links lead to the same places on the site.
"""

import html
import importlib
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files

from common.run import records
from isthmus import FRONT_DOOR
from isthmus.commands import PAPERS

LOG = get_plugin_logger("website")
ROOT = Path(__file__).parents[1]
NOTEBOOK = "docs/two_spaces.ipynb"
NOTEBOOK_PAGE = NOTEBOOK.replace(".ipynb", ".md")
FILES = ("*.md", "CITATION.cff", NOTEBOOK, "tests/faults/README.md", "docs/**/*.md", "docs/*.css")
FILES += ("docs/figures/**/*.png", "benchmarks/**/*.md", "benchmarks/results/*.json")
REFERENCE = re.compile(r"""<[^>]+?\s(?:href|src)=["']?([^"'\s>]+)""")  # in a page of HTML
ROWS = "docs/results/rows.csv"  # the rows of all records, made for the site


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Takes the files of the repository in the place of those of the folder `docs`.

    The style sheets and scripts of the theme, which are in another folder, stay.
    """
    theme = [file for file in files if file.src_dir != config.docs_dir]
    found = sorted({path for pattern in FILES for path in ROOT.glob(pattern)})
    where = str(ROOT), config.site_dir, config.use_directory_urls
    site = Files([*theme, *(File(str(path.relative_to(ROOT)), *where) for path in found)])
    written = {
        ROWS: records.frame(ROOT / "docs/results").to_csv(index=False),
        NOTEBOOK_PAGE: notebook((ROOT / NOTEBOOK).read_text()),
        **dict(reference()),
    }
    for path, text in written.items():
        site.append(File.generated(config, path, content=text))
    pages = [file.src_uri for file in site.documentation_pages()]
    by_paper = [  # each paper's own page, which leads to those of its experiments
        {paper: [page, *(p for p in pages if p.startswith(f"docs/results/{paper}/"))]}
        for paper in PAPERS
        if (page := f"docs/results/{paper}.md") in pages
    ]
    modules = [path for path in written if path.startswith("reference/")]
    by_package = itertools.groupby(modules, lambda page: page.split("/")[1].removesuffix(".md"))
    config.nav = [
        *(config.nav or []),
        {"Results": ["RESULTS.md", *by_paper, "docs/results/runs.md"]},
        {"Benchmarks": [path for path in pages if path.startswith("benchmarks/")]},
        {"Reference": [{name: [*group]} for name, group in by_package]},
    ]
    return site


def on_post_build(config: MkDocsConfig) -> None:
    """Warns of references to files that were not built: with --strict, the build fails."""
    site = Path(config.site_dir)
    for page in sorted(site.rglob("*.html")):
        for address in sorted(set(REFERENCE.findall(page.read_text()))):
            parts = urlsplit(html.unescape(address))
            path = unquote(parts.path)  # one from the root begins at the site
            target = site / path.lstrip("/") if path.startswith("/") else page.parent / path
            if not (parts.scheme or parts.netloc or target.exists()):
                LOG.warning("%s refers to %s, which is missing", page.relative_to(site), path)


def reference() -> Iterator[tuple[str, str]]:
    """Path and text of a page for the front door, and for each module of mathematics and data."""
    modules = {"encode": "isthmus", **FRONT_DOOR}
    front = "\n\n".join(
        f"::: {getattr(importlib.import_module(module), name).__module__}.{name}\n"
        f"    options:\n      show_root_heading: true\n      heading: isthmus.{name}"
        for name, module in modules.items()
    )
    yield "reference/isthmus.md", f"# isthmus\n\n{front}\n"
    for package in ("common", "isthmus", *PAPERS):
        for path in sorted((ROOT / package).rglob("*.py")):
            module = path.relative_to(ROOT).with_suffix("")
            if path.stem.startswith("_") or {"experiments", "reports"} & {*module.parts}:
                continue
            name = ".".join(module.parts)
            yield f"reference/{module}.md", f"# {name}\n\n::: {name}\n"


def notebook(text: str) -> str:
    """Markdown of a notebook: its cells, and what they have printed and drawn."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            if image := output.get("data", {}).get("image/png"):
                address = f"data:image/png;base64,{''.join(image).strip()}"
                parts.append(f"![What the cell draws]({address})")
            elif output.get("name") == "stdout":
                parts.append(f"```text\n{''.join(output['text'])}```")
    return "\n\n".join(parts)
