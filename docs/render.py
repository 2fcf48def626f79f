r"""Writes the tables of the Markdown pages from the records.

  python -m docs.render                    writes the pages, and prints which
  python -m docs.render --check            exit code 1 if a page is not what it would write
  python -m docs.render --figures_of=lpl/nli  draws the figures of records whose names begin so

A table stands between `<!-- results:NAME -->` and `<!-- end -->`. NAME is one of

  PAPER/RUN         figures, tables and provenance of a record (docs/results/PAPER/RUN.json)
  PAPER/RUN:TITLE   one of its tables, by title
  PAPER/*:TITLE     one of the summaries of all records, of a paper's page.py
  headlines         one line for each of the first headlines of each paper, for the README
  headlines:PAPER   all of one paper
  runs, data, speed, programs

Each paper's `page.py` has `tables(record) -> {title: Markdown}` and its `HEADLINES`, and may have
`summaries(records) -> {title: Markdown}`. Text outside of the marks is written by hand and stays.
Figures are drawn from the rows of a record wherever these suffice (`figures` of page.py); others
show vectors or steps of a training, and are made by the run itself (`python -m docs.again`).
"""

import importlib
import itertools
import json
import os
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

from absl import flags

from common.data.packages import PACKAGES
from common.errors import UserError
from common.files import as_json, write_atomically
from common.run import cli, records
from common.run.figures import png
from common.run.launch import define_config_flag
from common.run.records import Headline, Record
from common.run.results import Row, markdown, mean_and_deviation, plus_minus, published_on, select
from common.run.settings import apply_quick, flat
from isthmus.commands import PAPERS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/results"
CHECK = flags.DEFINE_bool("check", False, "Write nothing; exit code 1 if a page would change.")
FIGURES = flags.DEFINE_string("figures_of", "", "PAPER/NAME of records, or how names begin.")
IN_README = 2  # headlines of each paper in the README; RESULTS.md has all
BLOCK = re.compile(r"(<!-- results:(.+?) -->\n).*?(<!-- end -->)", flags=re.S)
PAGES = (
    "README.md",
    "RESULTS.md",
    "benchmarks/README.md",
    "docs/*.md",
    "docs/results/**/*.md",
)


def names() -> list[str]:
    """PAPER/RUN of all records."""
    return [str(p.relative_to(RESULTS).with_suffix("")) for p in sorted(RESULTS.glob("*/*.json"))]


def all_records() -> list[Record]:
    """All records."""
    return [records.read(RESULTS, name) for name in names()]


def config_of(record: Record) -> str:
    """PAPER/CONFIG of the config that a record was made by."""
    word = next(x for x in shlex.split(record.command) if x.startswith("--config="))
    return "/".join(Path(word).with_suffix("").parts[-2:])


def fingerprint(config: str) -> list[dict]:
    """The rows of the quick form of PAPER/CONFIG (docs/check.py); none if they are not stored."""
    path = ROOT / "docs/fingerprints" / f"{config}.json"
    return records.unpacked(path.read_text())[1] if path.exists() else []


def page_module(paper: str) -> ModuleType:
    """The module with a paper's tables and headlines."""
    return importlib.import_module(f"{paper}.page")


def content(name: str, page: Path) -> str:
    """What stands between the marks of a name.

    Args:
      name: of the block.
      page: the file it stands in, to which links to figures are relative.
    """
    if name in OTHERS:
        return OTHERS[name]()
    run, _, table = name.partition(":")
    if run == "headlines":
        return headlines(table)
    if run.endswith("/*"):
        return page_module(run[:-2]).summaries(all_records())[table]
    if run not in names():
        return "No run of this name is kept yet (`python -m docs.keep`)."
    record = records.read(RESULTS, run)
    tables = page_module(run.split("/")[0]).tables(record)
    if table:
        return tables[table]
    figures = [
        f"![{path.stem}]({os.path.relpath(path, page.parent)})"
        for path in sorted((ROOT / "docs/figures").glob(f"{run}-*.png"))
    ]
    titled = [f"**{title}**\n\n{text.strip()}" for title, text in tables.items()]
    stale = f"This record is {record.stale}." if record.stale else ""
    last = [text for text in (record.quoted, stale, record.provenance()) if text]
    return "\n\n".join([*figures, *titled, *last])


def fill(text: str, page: Path) -> str:
    """A page with its blocks filled."""
    return BLOCK.sub(lambda m: f"{m[1]}\n{content(m[2], page).strip()}\n\n{m[3]}", text)


def pages() -> dict[Path, str]:
    """Path -> what the page should hold."""
    paths = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    return {path: fill(path.read_text(), path) for path in paths}


def headlines(paper: str = "") -> str:
    """One line for each headline: the published number, ours and its reference.

    Args:
      paper: whose headlines; the first of each paper if empty.
    """
    lines = []
    for name in [paper] if paper else sorted({name.split("/")[0] for name in names()}):
        for headline in page_module(name).HEADLINES[: None if paper else IN_README]:
            row = _row(headline, headline.row)
            reference = "-"
            if headline.reference:
                reference = mean_and_deviation(_row(headline, headline.reference))
            proxy = " (proxy)" if row.proxy else ""
            published = plus_minus(row.paper_value, row.paper_std)
            published += f" ({published_on(row)})" if row.paper_dataset else ""
            size = f", {row.num_items:,} items" if row.num_items else ""
            cells = [published, mean_and_deviation(row), reference, row.dataset + size + proxy]
            lines.append([f"`{name}`", headline.measure, *cells])
    header = ("Package", "Measure", "Paper", "Ours", "From the truth", "Our data")
    return markdown(header, lines)


def _row(headline: Headline, wanted: dict) -> Row:
    rows = select(records.read(RESULTS, headline.record).rows, **wanted)
    if len(rows) != 1:
        raise UserError(
            f"The headline '{headline.measure}' selects {len(rows)} rows of {headline.record} by "
            f"{wanted}: name the fields and labels of one, such as its method and data set."
        )
    return rows[0]


def runs() -> str:
    """How each record was made, whether it holds, and what the quick form says that tells."""
    lines = []
    for record in all_records():
        changed = ", ".join(f"config.{name} has changed" for name in outdated(record))
        seconds = f"{record.seconds:,.0f} s" if record.seconds else "-"
        made = [record.finished, record.commit, record.machine(), seconds]
        state = record.stale or changed or "holds"
        lines.append([f"`{record.name}`", *made, state, quick_form(config_of(record))])
    made = "Finished (UTC)", "Commit", "Cores or device", "Time"
    return markdown(
        ("Record", *made, "State", "Its fingerprint: config, data of its quick form"), lines
    )


def quick_form(config: str) -> str:
    """The data and the largest number of items of a config's quick form."""
    rows = fingerprint(config)
    named = list(dict.fromkeys(row["dataset"] for row in rows))
    items = max((row.get("num_items") or 0 for row in rows), default=0)
    more = f" and {len(named) - 2} more" if len(named) > 2 else ""
    return f"`{config}`: {', '.join(named[:2])}{more}" + (f"; {items:,} items" if items else "")


def outdated(record: Record) -> list[str]:
    """Config values that the record's command would set otherwise today; quick runs' left out."""
    words = [word.replace("--config=", f"--config={ROOT}/") for word in shlex.split(record.command)]
    values = flags.FlagValues()
    define_config_flag(flag_values=values, sys_argv=words[2:])
    values(words[2:])
    now, then = _flat(apply_quick(values.config).to_dict()), _flat(record.config)
    return sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))


def _flat(values: dict) -> dict:
    """Dotted name -> value as it is read from JSON, without those of quick runs."""
    return {
        name: as_json(value)
        for name, value in flat(values).items()
        if not isinstance(value, dict) and not name.startswith("when_quick.")
    }


def data() -> str:
    """The data packages, shared ones and those of papers: what is in them, and their licences."""
    own = [getattr(page_module(paper), "PACKAGES", ()) for paper in PAPERS]
    lines = [
        ["`{}` {}".format(*package.release), package.source, package.licence]
        for package in itertools.chain(PACKAGES.values(), *own)
    ]
    return markdown(("Package", "Holds", "Licence"), lines)


def speed() -> str:
    """Each subject of benchmarks/ at its largest sizes: the ratio of each peer's time to ours."""
    lines = []
    for path in sorted((ROOT / "benchmarks/results").glob("*.json")):
        benchmark = json.loads(path.read_text())
        if not isinstance(benchmark, dict) or "goal" not in benchmark:
            continue  # vecmap.json: results, not times
        last: dict[str, str] = {row["family"]: row["case"] for row in benchmark["rows"]}
        for case in last.values():
            rows = [row for row in benchmark["rows"] if row["case"] == case]
            ours = rows[0]
            ratios = [
                row["side"]
                + " "
                + " / ".join(f"{times[0]:.2f}" for times in row["against"].values())
                for row in rows
                if row["against"]
            ]
            place = f"[{case}](results/{path.stem}.md)"
            cells = [benchmark["subject"], place, benchmark["chip"], f"{ours['seconds']:.3g} s"]
            lines.append([*cells, f"{ours['of_matmul']:.0%}", benchmark["goal"], "; ".join(ratios)])
    header = ("Subject", "Case", "Machine", "Ours", "Of matmul", "Goal", "Peer / ours")
    return markdown(header, lines)


def programs() -> str:
    """Memory and milliseconds of each compiled program on each kind of device."""
    machines, sizes, lines = [], {}, {}
    for path in sorted((ROOT / "benchmarks/results").glob("compile_*.json")):
        table = json.loads(path.read_text())
        machines.append(
            f"[{table['devices']} x {table['device']}](../benchmarks/results/{path.stem}.md)"
        )
        for row in table["rows"]:
            sizes[row["program"]] = row["sizes"]
            lines.setdefault(row["program"], {})[machines[-1]] = _program(row)
    rows = [
        [name, sizes[name], *(cells.get(machine, "") for machine in machines)]
        for name, cells in lines.items()
    ]
    return markdown(("Program", "Sizes", *machines), rows)


def _program(row: dict) -> str:
    """Temporary memory, the higher floor, and the compiler's estimate or the measured time."""
    if "error" in row:
        return row["error"]
    floor = max(row["seconds_products"], row["seconds_bytes"] or 0.0)
    parts = [f"{row['temporary'] / 2**20:,.3g} MiB", f"floor {1e3 * floor:,.3g} ms"]
    for name, seconds in (("estimate", row["seconds_estimate"]), ("measured", row["seconds"])):
        if seconds is not None:
            parts.append(f"{name} {1e3 * seconds:,.3g} ms")
    return ", ".join(parts)


OTHERS = {"runs": runs, "data": data, "speed": speed, "programs": programs}


def draw(prefix: str) -> None:
    """Draws the figures of records whose names begin so, and names those that need a run."""
    for record in (x for x in all_records() if x.name.startswith(prefix)):
        figures = page_module(record.name.split("/")[0]).figures(record)
        for path in sorted((ROOT / "docs/figures").glob(f"{record.name}-*.png")):
            drawn = figures.get(path.stem.removeprefix(f"{Path(record.name).name}-"))
            if drawn:
                write_atomically(path, png(drawn))
            print(f"{'wrote' if drawn else 'needs a run:'} {path.relative_to(ROOT)}")


def main(argv: list[str]) -> None:
    """Writes or checks the pages, or draws figures."""
    del argv
    if FIGURES.value:
        draw(FIGURES.value)
        return
    filled = pages()
    wrong = [path for path, text in filled.items() if path.read_text() != text]
    for path in wrong:
        if not CHECK.value:
            write_atomically(path, filled[path].encode())
        print(f"{'differs:' if CHECK.value else 'wrote'} {path.relative_to(ROOT)}")
    sys.exit(bool(CHECK.value and wrong))


if __name__ == "__main__":
    cli.run(main)
