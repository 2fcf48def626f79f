"""The pages of the site (mkdocs.yml): those of the repository, and a reference of its modules.

Pages keep their paths in the repository, so that their links lead to the same places on the site.
"""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files

import isthmus
from common.run import records
from isthmus.commands import PAPERS

LOG = get_plugin_logger("website")
ROOT = Path(__file__).parents[1]
NOTEBOOK = "docs/two_spaces.ipynb"
FILES = ("*.md", "CITATION.cff", NOTEBOOK, "tests/faults/README.md", "docs/**/*.md", "docs/*.css")
FILES += ("docs/figures/**/*.png", "benchmarks/**/*.md", "benchmarks/results/*.json")
REFERENCE = re.compile(r"""<[^>]+?\s(?:href|src)=["']?([^"'\s>]+)""")  # in a page of HTML
PACKAGES = "common", "isthmus", *PAPERS


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Takes the files of the repository in the place of those of the folder `docs`.

    The style sheets and scripts of the theme, which are in another folder, stay.
    """
    site = Files([file for file in files if file.src_dir != config.docs_dir])
    for path in sorted({path for pattern in FILES for path in ROOT.glob(pattern)}):
        name = str(path.relative_to(ROOT))
        site.append(File.generated(config, name, abs_src_path=str(path)))
    for name, text in written():
        site.append(File.generated(config, name, content=text))
    pages = [file.src_uri for file in site.documentation_pages()]

    def below(folder: str) -> list[str]:
        return [page for page in pages if page.startswith(f"{folder}/")]

    folders = {paper: f"docs/results/{paper}" for paper in PAPERS}
    papers = [{paper: [f"{path}.md", *below(path)]} for paper, path in folders.items()]
    modules = [{package: below(f"reference/{package}")} for package in PACKAGES]
    config.nav = [
        *(config.nav or []),
        {"Results": ["RESULTS.md", *papers, "docs/results/runs.md", "docs/results/spot_check.md"]},
        {"Benchmarks": below("benchmarks")},
        {"Reference": ["reference/isthmus.md", *modules]},
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


def written() -> Iterator[tuple[str, str]]:
    """Path and text of what is made for the site.

    These are the rows of all records, the notebook, and a reference of the front door and of each
    module of mathematics and data.
    """
    yield "docs/results/rows.csv", records.frame(ROOT / "docs/results").to_csv(index=False)
    yield NOTEBOOK.replace(".ipynb", ".md"), notebook((ROOT / NOTEBOOK).read_text())
    front = "\n\n".join(
        f"::: {getattr(isthmus, name).__module__}.{name}\n"
        f"    options: {{show_root_heading: true, heading: isthmus.{name}}}"
        for name in ("encode", *isthmus.FRONT_DOOR)
    )
    yield "reference/isthmus.md", f"# isthmus\n\n{front}\n"
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        module = path.relative_to(ROOT).with_suffix("")
        if not (path.stem.startswith("_") or {"experiments", "reports"} & {*module.parts}):
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
