"""What stands in the generated blocks of RESULTS.md and README.md; the tables are the packages'."""

import json
import re
from collections.abc import Callable

from anchor_opt import stitching_report
from anchor_opt import tables as anchor_tables
from common.data.wheels import WHEELS
from common.report import markdown, measured
from docs.render import RESULTS, ROOT, Kept, outdated, read
from embed_match import tables as match_tables
from lpl import nli_report
from lpl import tables as lpl_tables
from wasserstein_embed import graphs_report, image_report, words_report

# System, what is measured, kept run, the rows' values, digits of ours and of the paper's. Of each
# experiment the number that its paper is quoted for.
RELATIVE = {"representation": "relative", "anchors": "continuous", "method": "bootstrap"}
BETWEEN = {"source": "minilm", "target": "minilm_input", "metric": "mrr"}
TEST = {"metric": "accuracy", "num_pairs": 1_000, "dataset": "BBC pairs", "test": "test"}
SYSTEMS = (
    (
        "Anchor optimisation",
        "MRR from 15 seeds, 20,000 words (.11 by the paper's seeds alone)",
        "anchor_opt/retrieval_20000",
        RELATIVE | BETWEEN | {"optimised": "minilm_input"},
    ),
    (
        "",
        "zero-shot stitching, F1 on the other encoder",
        "anchor_opt/stitching",
        RELATIVE
        | {"head": "published", "metric": "f1", "decoder": "minilm_input", "encoder": "glove"},
    ),
    (
        "",
        "MRR across two image encoders",
        "anchor_opt/vision",
        RELATIVE
        | {
            "metric": "mrr",
            "optimised": "vit_narrow",
            "source": "vit_wide",
            "target": "vit_narrow",
        },
    ),
    (
        "Wasserstein embeddings",
        "images, kNN accuracy, trained by Euclidean distance",
        "wasserstein_embed/images",
        {"method": "euclidean", "neighbours_by": "euclidean"},
    ),
    (
        "",
        "graphs, distortion of clouds of five points in the plane",
        "wasserstein_embed/graphs",
        {"recipe": "reference", "method": "wasserstein_r2", "size": 5},
    ),
    (
        "Locality preserving loss",
        "word translation, P@1, LPL and MSE by CSLS",
        "lpl/word_alignment",
        {
            "method": "lpa_mse",
            "retrieval": "csls",
            "metric": "p_at_1",
            "num_pairs": 3_000,
            "source": "glove",
        },
    ),
    (
        "Align, match, ensemble",
        "two CBOW, l2 after rotation",
        "embed_match/match",
        {"source": "C1", "target": "C2", "metric": "l2"},
    ),
    (
        "",
        "CBOW and GloVe, words matched by transport",
        "embed_match/match",
        {"source": "C1", "target": "G1", "metric": "ot"},
    ),
)


def systems() -> str:
    """A line a system: the number of its paper, and ours, each on its own data.

    Best possible: anchors fitted on the true pairing.
    """
    lines = []
    for system, what, name, wanted in SYSTEMS:
        kept = read(name)
        if not kept:
            lines.append([system, what, "", "not yet kept", "", ""])
            continue
        row = _only(kept.rows, wanted)
        paper = "-" if row["paper_value"] is None else f"{row['paper_value']:.3f}".lstrip("0")
        ceiling = "-"
        if wanted.get("method") == "bootstrap":
            ceiling = measured(_only(kept.rows, wanted | {"method": "oracle"}))
        ours = [measured(row), ceiling, row["dataset"] + _standin(row)]
        lines.append([system, what, paper, *ours])
    header = ("System", "Measure", "Paper, its data", "Ours", "Best possible there", "Our data")
    return markdown(header, lines)


def data() -> str:
    """The data packages: what is in them, and their licences."""
    lines = [
        [f"`{wheel.project}` {wheel.version}", wheel.source, wheel.licence]
        for wheel in WHEELS.values()
    ]
    return markdown(("Package", "Holds", "Licence"), lines)


def speed() -> str:
    """Each subject of benchmarks/ at its largest sizes: the ratio of each peer's time to ours."""
    lines = []
    for path in sorted((ROOT / "benchmarks/results").glob("*.json")):
        found = json.loads(path.read_text())
        if not isinstance(found, dict) or "goal" not in found:
            continue  # vecmap.json: results, not times
        last: dict[str, str] = {row["family"]: row["case"] for row in found["rows"]}
        for case in last.values():
            rows = [row for row in found["rows"] if row["case"] == case]
            ours = rows[0]
            ratios = [
                row["side"]
                + " "
                + " / ".join(f"{times[0]:.2f}" for times in row["against"].values())
                for row in rows
                if row["against"]
            ]
            place = f"[{case}](results/{path.stem}.md)"
            cells = [found["subject"], place, found["chip"], f"{ours['seconds']:.3g} s"]
            lines.append([*cells, f"{ours['of_matmul']:.0%}", found["goal"], "; ".join(ratios)])
    header = ("Subject", "Case", "Machine", "Ours", "Of matmul", "Goal", "Peer / ours")
    return markdown(header, lines)


def kept_runs() -> str:
    """How each kept run was made."""
    lines = []
    for path in sorted(RESULTS.glob("*/*.json")):
        kept = read(str(path.relative_to(RESULTS).with_suffix("")))
        made = kept.made
        seconds = f"{made['seconds']:,.0f} s" if made["seconds"] else "-"
        old = outdated(kept)
        again = ", ".join(old[:2]) + (f" and {len(old) - 2} more" if len(old) > 2 else "")
        cells = [made["finished"], made["commit"], str(made["cores"]), seconds, again or "-"]
        lines.append([f"`{kept.name}`", *cells])
    header = ("Run", "Finished (UTC)", "Commit", "Cores", "Time", "Config values since changed")
    return markdown(header, lines)


def _retrieval(kept: Kept) -> str:
    return anchor_tables.retrieval(kept.config, kept.rows, kept.failed)[1]


def _sweep(kept: Kept) -> str:
    return anchor_tables.sweep(kept.config, kept.rows, kept.failed)


def _stitching(kept: Kept) -> str:
    rows = [row for row in kept.rows if row["anchors"] != "discrete"]
    return stitching_report.tables(kept.config, rows, kept.failed)[0]


def _word_alignment(kept: Kept) -> str:
    parts = [lpl_tables.published()]
    for title in dict.fromkeys(row["dataset"] for row in kept.rows):
        rows = [row for row in kept.rows if row["dataset"] == title]
        parts += [f"## {title}{_standin(rows[0])}", lpl_tables.ours(kept.config, rows)]
    return "\n\n".join(parts)


def _nli(kept: Kept) -> str:
    parts = [nli_report.published()]
    for name, test in nli_report.panels(kept.rows):
        rows = [row for row in kept.rows if (row["dataset"], row["test"]) == (name, test)]
        parts.append(nli_report.accuracies(kept.config, rows))
    return "\n\n".join(parts)


def _of(table: Callable) -> Callable[[Kept], str]:
    return lambda kept: table(kept.config, kept.rows)


IMAGE_SWEEP = _of(image_report.sweep_table)
# Experiment -> the table of a kept run.
TABLES = {
    "retrieval": _retrieval,
    "vision": _retrieval,
    "starts": _sweep,
    "sweep_seeds": _sweep,
    "sweep_anchors": _sweep,
    "sweep_words": _sweep,
    "sweep_noise": _sweep,
    "stitching": _stitching,
    "images": _of(image_report.table),
    "sweep_epsilon": IMAGE_SWEEP,
    "sweep_points": IMAGE_SWEEP,
    "sweep_dimensions": IMAGE_SWEEP,
    "graphs": lambda kept: graphs_report.tables(kept.config, kept.rows, [])[1],
    "words": lambda kept: words_report.correlations(kept.rows),
    "word_alignment": _word_alignment,
    "nli": _nli,
    "match": _of(match_tables.match),
    "correlate": _of(match_tables.correlate),
    "ensemble": _of(match_tables.ensemble),
}
OTHERS = {"systems": systems, "data": data, "runs": kept_runs, "speed": speed}


def content(name: str) -> str | None:
    """The content of a block, or None where its run is not kept."""
    if name in OTHERS:
        return OTHERS[name]()
    kept = read(name)
    if not kept:
        return None
    table = f"{TABLES[kept.config.experiment](kept).strip()}\n\n{kept.made.get('quoted', '')}"
    titled = re.sub(r"^#+ (.*)$", r"**\1**", table, flags=re.M)  # the page has its own headings
    return "\n\n".join([*_figures(name), titled.strip(), _made(kept)])


def _figures(name: str) -> list[str]:
    """The kept figures of a run, as images."""
    paths = sorted((ROOT / "docs/figures").glob(f"{name}-*.png"))
    return [f"![{name}: {path.stem.split('-', 1)[1]}]({path.relative_to(ROOT)})" for path in paths]


def _made(kept: Kept) -> str:
    """How a run was made, in a line."""
    made = kept.made
    seconds = f" in {made['seconds']:,.0f} s" if made["seconds"] else ""
    cores = f"{made['cores']} core{'s' if made['cores'] > 1 else ''}"
    again = " Values of its config have changed since: to be run again." if outdated(kept) else ""
    return (
        f"`{made['command']}`: {made['finished'][:10]}, {made['commit']}, {cores}{seconds}.{again}"
    )


def _standin(row: dict) -> str:
    return " (stand-in)" if row["standin"] else ""


def _only(rows: list[dict], wanted: dict) -> dict:
    found = [row for row in rows if all(row.get(k) == v for k, v in wanted.items())]
    assert len(found) == 1, (wanted, len(found))
    return found[0]
