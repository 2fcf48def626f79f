"""Records, the fingerprints by which they hold, and the pages that are written from them."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from common.errors import UserError
from common.run import records
from common.run.records import Headline
from common.run.results import Row
from common.run.workdir import COMMAND, Workdir
from docs import again, check, keep, render

ABOUT = {"experiment": "e", "dataset": "d", "metric": "mrr", "std": 0.0, "num_runs": 1}
COMMAND_LINE = "python -m p.main --config=configs/p/c.py --config.k=3"


def row(**fields):
    return dataclasses.asdict(Row(**ABOUT | fields))


def test_records_are_rows_of_the_schema_on_their_papers_pages():
    for record in render.all_records():
        assert record.rows and np.isfinite([[x.mean, x.std] for x in record.rows]).all(), record
        paper = record.name.split("/")[0]
        pages = [*render.RESULTS.glob(f"{paper}.md"), *render.RESULTS.glob(f"{paper}/*.md")]
        text = "".join(page.read_text() for page in pages)
        assert re.search(f"<!-- results:{record.name}[: ]", text), record.name
        assert render.fingerprint(render.config_of(record)), record.name


def test_pages_are_what_the_records_say():
    wrong = [path.name for path, text in render.pages().items() if path.read_text() != text]
    assert not wrong, "run python -m docs.render"


def test_figures_are_drawn_from_the_rows_wherever_these_suffice(monkeypatch, capsys):
    """Others show vectors or steps: of retrieval, and of training on images and words."""
    monkeypatch.setattr(render, "write_atomically", lambda path, content: None)
    render.draw("")
    needed = re.findall(r"needs a run: docs/figures/(\S+)-", capsys.readouterr().out)
    for record in render.all_records():
        if any(name.startswith(record.name) for name in needed):
            assert record.config["experiment"] in ("retrieval", "vision", "images", "words")


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"method": "a", "mean": 0.25}, {"method": "b", "mean": 0.5}],
        [{"method": "a", "mean": 0.25, "dim": 3, "labels": {"x": 1}}, {"method": "a", "mean": 0.5}],
        [{"method": "a", "mean": 0.25, "labels": {"x": i, "y": 2}} for i in range(2)],
    ],
)
def test_rows_are_read_as_they_were_kept(rows, tmp_path):
    rows = [row(**values) for values in rows]
    head = {"command": "c", "finished": "2026-11-22 08:00", "commit": "a", "cores": 1}
    (tmp_path / "p").mkdir()
    (tmp_path / "p/n.json").write_text(records.packed(head | {"config": {"a": [1]}}, rows))
    record = records.read(tmp_path, "p/n")
    assert [dataclasses.asdict(kept) for kept in record.rows] == rows
    assert record.provenance() == "`c`: 2026-11-22, a, 1 core."
    made = record._replace(device="one H100", seconds=1234.5).provenance()
    assert made == "`c`: 2026-11-22, a, one H100 in 1,234 s."


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with git, one module of which is loaded; records are kept below it."""
    root = tmp_path / "checkout"
    (root / "configs/p").mkdir(parents=True)
    (root / "configs/p/c.py").write_text("def get_config(): ...")
    (root / "loaded.py").write_text("a = 1")
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm one"):
        subprocess.run(["git", "-C", str(root), *command.split()], check=True)
    for path in ("loaded.py", "configs/p/c.py"):
        os.utime(root / path, (0, 0))
    monkeypatch.syspath_prepend(root)
    monkeypatch.setitem(sys.modules, "loaded", type(sys)("loaded"))
    sys.modules["loaded"].__file__ = str(root / "loaded.py")
    for module in (records, render, check):
        monkeypatch.setattr(module, "ROOT", root)
    monkeypatch.setattr(render, "RESULTS", root / "docs/results")
    monkeypatch.setattr(render, "outdated", lambda record: [])
    return root


def run(folder, mean=0.5, quick=False, method="a"):
    """Makes the folder of a finished run of one row, with a figure."""
    work = Workdir(folder, {"quick": quick, "steps": 3})
    (folder / COMMAND).write_text(COMMAND_LINE + "\n")
    records.finish(work, [Row(**ABOUT, method=method, mean=mean)], "| a |", {"bars": Figure()})
    return folder


def test_a_run_writes_its_record_with_what_its_parts_say_of_themselves(checkout, tmp_path):
    parts = tmp_path / "run/parts"
    parts.mkdir(parents=True)
    for name, failed, wrong in (("x", True, 0), ("y", False, 0), ("z", False, 1)):
        notes = {"failed": failed, "probability": 0.25, "initialization": "pairs"}
        rows = [{"metric": "mrr", "mean": 0.5}, {"metric": "false_success", "mean": wrong}]
        content = {"crc32": 0, "result": {"rows": rows, "notes": notes}}
        (parts / f"{name}.json").write_text(json.dumps(content))
    (parts / "other.json").write_text('{"crc32": 0, "result": [1]}')
    keep.keep(run(tmp_path / "run"), "p/n")
    record = records.read(render.RESULTS, "p/n")
    assert record.failed == ["x"] and record.command == COMMAND_LINE
    assert [(x.part, x.succeeded) for x in record.stated] == [
        ("x", False),
        ("y", True),
        ("z", False),
    ]
    assert record.config == {"quick": False, "steps": 3} and record.seconds is not None
    head = subprocess.check_output(["git", "-C", checkout, "rev-parse", "HEAD"], text=True)
    assert record.commit and head.startswith(record.commit)
    assert record.rows == [Row(**ABOUT, method="a", mean=0.5)]


SPOILED = {
    "": lambda root: None,
    "changed": lambda root: (root / "loaded.py").write_text("a = 2"),
    "exported": lambda root: shutil.rmtree(root / ".git"),
}


@pytest.mark.parametrize(
    "spoiled, quick, figures, sentence",
    [
        ("", True, None, "is a quick run: run its command without --config.quick"),
        ("changed", False, None, "was made by changed loaded.py: commit the code and run it again"),
        ("exported", False, None, "was made by code without git: commit"),
        ("", False, ["mrr"], r"There is no .*mrr\.png: give --figures"),
    ],
)
def test_what_cannot_be_trusted_is_not_kept(spoiled, quick, figures, sentence, checkout, tmp_path):
    SPOILED[spoiled](checkout)
    with pytest.raises(UserError, match=sentence):
        keep.keep(run(tmp_path / "run", quick=quick), "p/n", figures)
    with pytest.raises(UserError, match="give the folder of a finished run"):
        keep.keep(tmp_path, "p/n")
    assert not render.RESULTS.exists() and not (checkout / "docs/figures").exists()


def test_code_that_changes_during_a_run_cannot_be_trusted(checkout, tmp_path):
    work = Workdir(tmp_path / "run", {})
    os.utime(checkout / "loaded.py", (work.started + 1, work.started + 1))
    records.finish(work, [Row(**ABOUT, method="a", mean=0.5)], "| a |")
    with pytest.raises(UserError, match=r"changed loaded\.py"):
        keep.keep(tmp_path / "run", "p/n")


@pytest.fixture
def quick_runs(monkeypatch):
    """Replaces quick runs and runs of records by rows of a mean that the caller sets."""
    now = {"mean": 0.5}

    def quick(configs, folder, jobs):
        for config in configs:
            run(folder / config, now["mean"], quick=True)

    monkeypatch.setattr(check, "run_all", quick)
    monkeypatch.setattr(
        again, "make", lambda record, folder: run(folder / record.name, now["mean"])
    )
    return now


def test_a_change_of_numbers_makes_the_records_of_its_methods_stale_until_they_are_made_again(
    checkout, tmp_path, quick_runs, capsys
):
    for name, method in (("p/n", "a"), ("p/other", "b")):
        keep.keep(run(tmp_path / method, method=method), name, ["bars"])
    found = check.check(tmp_path / "first", 1)
    check.accept(found, tmp_path / "first", "new")
    assert check.report(check.check(tmp_path / "same", 1))
    assert not any(record.stale for record in render.all_records())
    quick_runs["mean"] = 0.6
    found = check.check(tmp_path / "changed", 1)
    assert not check.report(found)
    assert "a mrr (d): mean 0.5 -> 0.6, std 0 -> 0" in capsys.readouterr().out
    check.accept(found, tmp_path / "changed", "ties count half")
    assert check.report(check.check(tmp_path / "accepted", 1))  # what is stale is known
    stale = [record.name for record in render.all_records() if record.stale]
    assert stale == ["p/n"] and "ties count half" in render.runs()
    again.again([records.read(render.RESULTS, "p/n")], tmp_path / "again", 1)
    record = records.read(render.RESULTS, "p/n")
    assert record.rows[0].mean == 0.6 and not record.stale
    assert "docs/figures/p/n-bars.png" in capsys.readouterr().out


@pytest.mark.network
@pytest.mark.slow
def test_a_changed_constant_makes_the_configs_of_its_method_fall_and_no_others(tmp_path):
    """In a copy of the tree. The bisections of the search's anchors are 60; 2 are too few."""
    tree = tmp_path / "tree"
    ignored = shutil.ignore_patterns(".*", "runs", "figures", "*.egg-info", "__pycache__")
    shutil.copytree(Path(__file__).parents[1], tree, ignore=ignored)
    method = tree / "anchor_opt/methods/anchors.py"
    text = method.read_text()
    assert text.count("BISECTIONS = 60") == 1
    method.write_text(text.replace("BISECTIONS = 60", "BISECTIONS = 2"))
    others = ("frontier/spaces", "embed_match/ensemble")
    command = [sys.executable, "-m", "docs.check", "frontier/few_pairs", *others, "--run=runs"]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    done = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    fell, *held = done.stdout.splitlines()
    assert done.returncode == 1 and "bootstrap mrr" in fell and "goat mrr" not in fell
    assert held == [f"{name}: valid" for name in others]


A, B = row(method="a", mean=0.25), row(method="b", mean=0.5)


@pytest.mark.parametrize(
    "fresh, phrase",
    [
        ([A], "missing: b mrr (d)"),
        ([A, B, row(method="c", mean=0.5)], "new: c mrr (d)"),
        ([A, B, B], "3 rows instead of 2"),
        ([A, B | {"labels": {"x": 1}}], "new: b mrr (d, x 1)"),
        ([A, B | {"mean": 0.5002}], "b mrr (d): mean 0.5 -> 0.5002"),
        ([A, B | {"std": 0.1}], "b mrr (d): mean 0.5 -> 0.5, std 0 -> 0.1"),
        ([A, B | {"mean": float("nan")}], "b mrr (d): mean 0.5 -> nan"),
        ([A | {"num_runs": 2}, B], "new: a mrr (d)"),
        ([B, A], None),
        ([A | {"quick": True}, B | {"paper_value": 0.9}], None),  # not what was measured
        ([A | {"mean": 0.25009}, B], None),
    ],
)
def test_missing_new_and_other_rows_are_differences(fresh, phrase):
    phrases = [text for _, text in check.differences([A, B], fresh)]
    assert any(p.startswith(phrase) for p in phrases) if phrase else not phrases


def test_quick_runs_train_models_themselves_and_share_packages(monkeypatch, tmp_path):
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "users"))
    program = (
        "import os, pathlib, sys\n"
        "for name in ('packages/fetched', 'embeddings/trained', 'encoders/trained'):\n"
        "    path = pathlib.Path(os.environ['ISTHMUS_CACHE'], name)\n"
        "    path.parent.mkdir(exist_ok=True)\n"
        "    path.touch()\n"
        "sys.exit('lost' if 'bad' in sys.argv[1] else 0)\n"
    )
    monkeypatch.setattr(check, "ROOT", tmp_path)
    (tmp_path / "p").mkdir()
    (tmp_path / "p/main.py").write_text(program)
    check.run_all(["p/one", "p/two"], tmp_path / "quick", 1)  # the second one finds the links
    files = [path for path in (tmp_path / "users").rglob("*") if path.is_file()]
    assert files == [tmp_path / "users/packages/fetched"]
    with pytest.raises(UserError, match=r"1 quick runs failed; .*bad\.log ends with: lost"):
        check.run_all(["p/bad"], tmp_path / "other", 2)
    with pytest.raises(UserError, match="maybe with runs of other code: choose another --run"):
        check.run_all(["p/one"], tmp_path / "quick", 1)


def test_config_values_that_have_changed_since_a_run_are_named():
    record = records.read(render.RESULTS, "lpl/nli")
    before = render.outdated(record)
    record.config["delta_gone"] = 3
    record.config["random_seeds"] = [7]
    assert set(render.outdated(record)) - set(before) == {"delta_gone", "random_seeds"}
    other = record._replace(command=f"{record.command} --config.random_seeds=7")
    assert set(render.outdated(other)) - set(before) == {"delta_gone"}


def test_a_headline_that_selects_two_rows_is_named():
    headline = Headline("accuracy of ours", "lpl/nli", {"metric": "accuracy"})
    with pytest.raises(UserError, match=r"'accuracy of ours' selects \d+ rows of lpl/nli"):
        render._row(headline, headline.row)
