"""Pages of the commands: the templates of their reports, in this folder, and reports as HTML."""

import base64
import html
from pathlib import Path
from string import Template
from urllib.parse import unquote

from markdown_it import MarkdownIt

from common.files import write_atomically


def filled(name: str, **values: object) -> str:
    """The text of a template with these values."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return Template(text).substitute(values)


def page(text: str, title: str, folder: Path, end: str = "") -> str:
    """A report in Markdown as one HTML page with its figures, PNG of `folder`, and a last part."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    inline = (child for token in tokens for child in token.children or ())
    for image in (child for child in inline if child.type == "image"):
        content = (folder / unquote(str(image.attrs["src"]))).read_bytes()
        image.attrs["src"] = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    body = parser.renderer.render(tokens, parser.options, {})
    return filled("page.html", title=html.escape(title), body=body + end)


def write(folder: Path, text: str, title: str, end: str) -> None:
    """Writes report.html, see `page`, and then report.md."""
    write_atomically(folder / "report.html", page(text, title, folder, end).encode())
    write_atomically(folder / "report.md", text.encode())
