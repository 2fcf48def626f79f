r"""Writes the tables of the Markdown pages from the records.

  python -m docs.render                       writes the pages, and prints which
  python -m docs.render --check               exit code 1 if a page is not what it would write
  python -m docs.render --figures_of=lpl/nli  draws the figures of records whose names begin so

A table stands between `<!-- results:NAME -->` and `<!-- end -->`; text outside of these marks is
written by hand and stays. NAME is one of

  PAPER/RUN         figures, tables and provenance of a record (docs/results/PAPER/RUN.json)
  PAPER/RUN:TITLE   one of its tables, by title
  PAPER/*:TITLE     one of PAPER.reports.SUMMARIES, of all records
  headlines         the first headlines of each paper, for the README
  headlines:PAPER   all of one paper
  runs, data, speed, programs
"""

import importlib
import itertools
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from benchmarks import summaries
from common.data.packages import PACKAGES
from common.errors import UserError
from common.files import as_json, write_atomically
from common.run import cli, records
from common.run.figures import png
from common.run.launch import define_config_flag
from common.run.records import Headline, Record, Report, drawn
from common.run.results import Row, markdown, mean_and_deviation, plus_minus, select
from common.run.workdir import differences
from isthmus.commands import PAPERS

ROOT = Path(__file__).parents[1]
RESULTS, FINGERPRINTS = ROOT / "docs/results", ROOT / "docs/fingerprints"
CHECK = flags.DEFINE_bool("check", False, "Write nothing; exit code 1 if a page would change.")
FIGURES = flags.DEFINE_string("figures_of", "", "PAPER/NAME of records, or how names begin.")
IN_README = 8  # headlines, in turn one of each paper; RESULTS.md has all
BLOCK = re.compile(r"(<!-- results:(.+?) -->\n).*?(<!-- end -->)", flags=re.S)
PAGES = ("README.md", "RESULTS.md", "benchmarks/README.md", "docs/*.md", "docs/results/**/*.md")


def all_records() -> list[Record]:
    """All records, PAPER/RUN.json of the results."""
    return records.read_all(RESULTS)


def fallen() -> list[Record]:
    """The records that do not hold."""
    return [record for record in all_records() if state(record)]


def config_of(record: Record) -> str:
    """PAPER/CONFIG of the config that a record was made by."""
    word = next(x for x in shlex.split(record.command) if x.startswith("--config="))
    return "/".join(Path(word).with_suffix("").parts[-2:])


def fingerprint(config: str) -> Sequence[Row]:
    """The rows of the quick form of PAPER/CONFIG (docs/check.py); none if it is new."""
    known = (FINGERPRINTS / f"{config}.json").exists()
    return records.read(FINGERPRINTS, config).rows if known else []


def report_of(record: Record) -> Report:
    """The report of a record's experiment."""
    paper, name = record.name.split("/")[0], record.config["experiment"]
    return importlib.import_module(f"{paper}.experiments.{name}").report


def kept_figures(name: str) -> dict[str, Path]:
    """FIGURE -> its file, of those that are kept of the record PAPER/NAME."""
    files = sorted((ROOT / "docs/figures").glob(f"{name}-*.png"))
    return {file.stem.removeprefix(f"{Path(name).name}-"): file for file in files}


def content(name: str, page: Path) -> str:
    """What stands between the marks of a name, with links to figures relative to the page."""
    if name in OTHERS:
        return OTHERS[name]()
    run, _, table = name.partition(":")
    if run == "headlines":
        return headlines(table)
    if run.endswith("/*"):
        reports = importlib.import_module(f"{run[:-2]}.reports")
        return reports.SUMMARIES[table](all_records())
    if not (RESULTS / f"{run}.json").exists():
        return "No run of this name is kept yet (`python -m docs.keep`)."
    record = records.read(RESULTS, run)
    tables = report_of(record).tables(record)
    if table:
        return tables[table]
    files = kept_figures(run).values()
    figures = [f"![{file.stem}]({os.path.relpath(file, page.parent)})" for file in files]
    # The notes of a table stand in the text of the page, once for all records.
    titled = [f"**{title}**\n\n{x.strip()}" for title, x in tables.items() if title != "Notes"]
    stale = f"This record is {record.stale}." if record.stale else ""
    quoted = re.sub("(?m)^#+ (.*)$", r"**\1**", record.quoted)
    return "\n\n".join([*figures, *titled, *filter(None, (quoted, stale, record.provenance()))])


def filled(page: Path) -> str:
    """What a page should hold: its text with its blocks filled."""
    text = page.read_text()
    return BLOCK.sub(lambda m: f"{m[1]}\n{content(m[2], page).strip()}\n\n{m[3]}", text)


def headlines(paper: str = "") -> str:
    """One line for each headline of a paper; without one, for the first ones of all papers."""
    papers = [paper] if paper else sorted({path.parent.name for path in RESULTS.glob("*/*.json")})
    lines = []
    for place, name in enumerate(papers):
        known = importlib.import_module(f"{name}.headlines").HEADLINES
        share = len(known) if paper else (IN_README + len(papers) - 1 - place) // len(papers)
        lines += [[f"`{name}`", *headline(each)] for each in known[:share]]
    header = ("Package", "Measure", "Paper", "Ours", "From the truth", "Our data")
    return markdown(header, lines)


def headline(known: Headline) -> list[str]:
    """The cells of a headline; UserError: it does not select one row of its record."""
    record = records.read(RESULTS, known.record)

    def number(wanted: dict) -> Row:
        rows = select(record.rows, **wanted)
        if len(rows) != 1:
            raise UserError(
                f"The headline '{known.measure}' selects {len(rows)} rows of {known.record} by "
                f"{wanted}: name the fields and labels of one, such as its method and data set."
            )
        return rows[0]

    row, printed, reference = number(known.row), "-", "-"
    lookup = getattr(report_of(record), "published", None)
    if paper := lookup and lookup(row, record.config):
        printed = plus_minus(paper.value, paper.std)
        printed += f" ({paper.measured_on()})" if paper.dataset else ""
    if known.reference:
        reference = mean_and_deviation(number(known.row | known.reference))
    size = f", {row.num_items:,} items" if row.num_items else ""
    data = row.dataset + size + (" (proxy)" if row.proxy else "")
    return [known.measure, printed, mean_and_deviation(row), reference, data]


def runs() -> str:
    """How each record was made, whether it holds, and what the quick form says that tells."""
    lines = []
    for record in all_records():
        seconds = f"{record.seconds:,.0f} s" if record.seconds else "-"
        made = [record.finished, record.commit, record.machine(), seconds]
        quick = fingerprint(config_of(record))
        sets = list(dict.fromkeys(row.dataset for row in quick))
        more = f" and {len(sets) - 2} more" if len(sets) > 2 else ""
        items = max((row.num_items or 0 for row in quick), default=0)
        form = f"`{config_of(record)}`: {', '.join(sets[:2])}{more}"
        form += f"; {items:,} items" if items else ""
        lines.append([f"`{record.name}`", *made, state(record) or "holds", form])
    header = "Record", "Finished (UTC)", "Commit", "Cores or device", "Time", "State"
    return markdown((*header, "Its fingerprint: config, data of its quick form"), lines)


def state(record: Record) -> str:
    """Since when a record is stale and why, or which values its command would set otherwise now."""
    words = [word.replace("--config=", f"--config={ROOT}/") for word in shlex.split(record.command)]
    values = flags.FlagValues()
    define_config_flag(flag_values=values, sys_argv=words[2:])
    values(words[2:])
    now = as_json(values.config.to_dict())
    changed = differences(record.config, now, "config.")
    # The values of quick forms are the fingerprint's, not the record's.
    return record.stale or "; ".join(x for x in changed if "when_quick" not in x.split(" ")[0])


def data() -> str:
    """The data packages, shared ones and those of papers: what is in them, and their licences."""
    papers = [getattr(importlib.import_module(paper), "PACKAGES", ()) for paper in PAPERS]
    lines = [
        ["`{}` {}".format(*package.release), package.source, package.licence]
        for package in itertools.chain(PACKAGES.values(), *papers)
    ]
    return markdown(("Package", "Holds", "Licence"), lines)


OTHERS = {"runs": runs, "data": data, "speed": summaries.speed, "programs": summaries.programs}


def draw(prefix: str) -> None:
    """Draws the figures of records whose names begin so, and names those that need a run."""
    for record in (x for x in all_records() if x.name.startswith(prefix)):
        figures = drawn(report_of(record), record)
        for name, file in kept_figures(record.name).items():
            if name in figures:
                write_atomically(file, png(figures[name]))
            print(f"{'wrote' if name in figures else 'needs a run:'} {file.relative_to(ROOT)}")


def main(argv: list[str]) -> None:
    """Writes or checks the pages, or draws figures."""
    del argv
    if FIGURES.value:
        draw(FIGURES.value)
        return
    texts = {page: filled(page) for pattern in PAGES for page in sorted(ROOT.glob(pattern))}
    wrong = [page for page, text in texts.items() if page.read_text() != text]
    for page in wrong:
        if not CHECK.value:
            write_atomically(page, texts[page].encode())
        print(f"{'differs:' if CHECK.value else 'wrote'} {page.relative_to(ROOT)}")
    sys.exit(bool(CHECK.value and wrong))


if __name__ == "__main__":
    cli.run(main)
