"""Records, the fingerprints by which they hold, and the pages that are written from them."""

import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from absl import flags
from absl.testing import flagsaver
from matplotlib.figure import Figure

from common.errors import UserError
from common.run import records
from common.run.records import Headline, Record
from common.run.results import Row
from common.run.workdir import COMMAND, Workdir
from docs import again, check, keep, render

COMMAND_LINE = "python -m p.main --config=configs/p/c.py --config.k=3"


def row(method="a", mean=0.5, metric="mrr", **fields):
    return Row(experiment="e", dataset="d", method=method, metric=metric, mean=mean, **fields)


A, B = row("a", 0.25), row("b")
LABELLED = [row(dim=3, labels={"x": i, "y": 2}) for i in range(2)]


def test_records_are_rows_of_the_schema_on_their_papers_pages():
    for record in render.all_records():
        assert record.rows and np.isfinite([[x.mean, x.std] for x in record.rows]).all(), record
        paper = record.name.split("/")[0]
        pages = [*render.RESULTS.glob(f"{paper}.md"), *render.RESULTS.glob(f"{paper}/*.md")]
        text = "".join(page.read_text() for page in pages)
        assert re.search(f"<!-- results:{record.name}[: ]", text), record.name
        assert render.fingerprint(render.config_of(record)), record.name


def test_figures_are_drawn_from_the_rows_wherever_these_suffice(monkeypatch, capsys):
    """Others show vectors or steps: of retrieval, languages, and training on images and words."""
    for name in ("png", "write_atomically"):
        monkeypatch.setattr(render, name, lambda *_: None)
    render.draw("")
    needed = re.findall(r"needs a run: docs/figures/(\S+)-", capsys.readouterr().out)
    for record in render.all_records():
        if record.name != "frontier/languages" and any(x.startswith(record.name) for x in needed):
            assert record.config["experiment"] in ("retrieval", "vision", "images", "words")


@pytest.mark.parametrize("rows", [[], [A, B], LABELLED, [*LABELLED, A]])
def test_records_are_read_as_they_were_written(rows, tmp_path):
    record = Record(rows, "n", "c", "2026-11-22 08:00", "a", cores=1, config={"a": [1]})
    records.write(tmp_path / "n.json", record)
    assert records.read(tmp_path, "n") == record
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
    monkeypatch.setitem(sys.modules, "loaded", type(sys)("loaded"))
    sys.modules["loaded"].__file__ = str(root / "loaded.py")
    for module in (records, render, check):
        monkeypatch.setattr(module, "ROOT", root)
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(render, "RESULTS", root / "docs/results")
    monkeypatch.setattr(render, "FINGERPRINTS", root / "docs/fingerprints")
    monkeypatch.setattr(render, "state", lambda record: record.stale)
    return root


class report:
    """Of an experiment of one table."""

    tables = staticmethod(lambda record: {"T": "| a |"})


def run(folder, made=A, quick=False, spoil=":", parts=()):
    """Makes the folder of a finished run of one row, with a figure; `spoil` is run during it."""
    work = Workdir(folder, {"quick": quick, "steps": 3})
    (folder / COMMAND).write_text(COMMAND_LINE + "\n")
    for name, part in dict(parts).items():
        work.part(name, lambda part=part: part)
    subprocess.run(spoil, shell=True, check=True, cwd=records.ROOT)
    records.finish(work, [made], report, figures={"b": Figure()})
    return folder


def test_a_run_writes_its_record_with_what_its_parts_say_of_themselves(checkout, tmp_path):
    parts = {"other": [1]}
    for name, failed, wrong in (("x", True, 0), ("y", False, 0), ("z", False, 1)):
        notes = {"failed": failed, "probability": 0.25, "initialization": "pairs"}
        rows = [{"metric": "mrr", "mean": 0.5}, {"metric": "false_success", "mean": wrong}]
        parts[name] = {"rows": rows, "notes": notes}
    keep.keep(run(tmp_path / "run", parts=parts), "p/n")
    record = records.read(render.RESULTS, "p/n")
    assert record.failed == ["x"] and record.command == COMMAND_LINE
    assert [(x.part, x.succeeded) for x in record.stated] == [(x, x == "y") for x in "xyz"]
    assert record.config == {"quick": False, "steps": 3} and record.rows == [A]
    head = subprocess.check_output(["git", "-C", checkout, "rev-parse", "HEAD"], text=True)
    assert record.commit and head.startswith(record.commit) and record.seconds is not None


@pytest.mark.parametrize(
    "spoil, quick, figures, sentence",
    [
        (":", True, None, "is a quick run: run its command without --config.quick"),
        ("echo a >> loaded.py", False, None, "by changed loaded.py: commit the code and run it"),
        ("touch -d 2100-01-01 loaded.py", False, None, "was made by changed loaded.py"),
        ("rm -r .git", False, None, "was made by code without git: commit"),
        (": no git", False, None, "was made by code without git: commit"),
        (":", False, ["mrr"], r"There is no .*mrr\.png: give --figures"),
    ],
)
def test_what_cannot_be_trusted_is_not_kept(
    spoil, quick, figures, sentence, checkout, tmp_path, monkeypatch
):
    if spoil == ": no git":
        monkeypatch.setenv("PATH", "")
    made = run(tmp_path / "run", quick=quick, spoil=spoil)
    with pytest.raises(UserError, match=sentence):
        keep.keep(made, "p/n", figures)
    with pytest.raises(UserError, match="give the folder of a finished run"):
        keep.keep(tmp_path, "p/n")
    assert not (checkout / "docs").exists()


def test_a_change_of_numbers_makes_the_records_of_its_methods_stale_until_they_are_made_again(
    checkout, tmp_path, monkeypatch, capsys
):
    now = row(mean=0.5)
    for module in (check, again):
        monkeypatch.setattr(
            module,
            "run_copies",
            lambda commands, *_: (run(x, now, "quick" in c[-1]) for x, c in commands.items()),
        )
    for name, method in (("p/n", "a"), ("p/other", "b")):
        keep.keep(run(tmp_path / method, row(method)), name, ["b"])
    check.accept(check.check(tmp_path / "first", 1), tmp_path / "first", "new")
    assert check.report(check.check(tmp_path / "same", 1)) and not render.fallen()
    now = row(mean=0.6)
    found = check.check(tmp_path / "changed", 1)
    assert not check.report(found)
    moved = "a mrr (dataset d, num_runs 1, proxy False): mean 0.5 -> 0.6, std 0 -> 0"
    assert moved in capsys.readouterr().out
    for why, reasons in (("ties count half", 1), ("ties count half", 1), ("an epoch more", 2)):
        check.accept(found, tmp_path / "changed", why)  # an equal reason is not repeated
        (stale,) = render.fallen()
        assert stale.name == "p/n" and stale.stale.count("since") == reasons
        assert stale.stale.endswith(why) and "ties count half" in render.runs()
    assert check.report(check.check(tmp_path / "accepted", 1))  # what is stale is known
    for options, kept in ((["--draw=2"], False), ([], True)):
        with flagsaver.flagsaver():
            flags.FLAGS(["again", f"--run={tmp_path / f'again{kept}'}", *options])
            again.main([""])
        flags.FLAGS.unparse_flags()
        printed = capsys.readouterr().out
        assert (printed.count(moved), "`p/other`" in printed) == (1, not kept)
        assert ("wrote docs/figures/p/n-b.png" in printed, not render.fallen()) == (kept, kept)
    assert records.read(render.RESULTS, "p/n").rows == [now]


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
    command = [sys.executable, "-m", "docs.check", "frontier/few_pairs", "frontier/spaces"]
    command.append("--run=runs")
    environment = os.environ | {"PYTHONPATH": str(tree)}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    fell, held = done.stdout.splitlines()
    assert done.returncode == 1 and "bootstrap mrr" in fell and "goat mrr" not in fell
    assert held == "frontier/spaces: valid"


@pytest.mark.parametrize(
    "fresh, phrase",
    [
        ([A], "b mrr .*: missing"),
        ([A, B, row("c")], "c mrr .*: new"),
        ([A, row("b", labels={"x": 1})], r"b mrr .*, x 1\): new"),
        ([A, row("b", 0.5002)], "b mrr .*: mean 0.5 -> 0.5002"),
        ([A, row("b", std=0.1)], "b mrr .*: mean 0.5 -> 0.5, std 0 -> 0.1"),
        ([A, row("b", math.nan)], "b mrr .*: mean 0.5 -> nan"),
        ([row("a", 0.25, num_runs=2), B], "a mrr .*: new"),
        ([B, A], None),
        ([row("a", 0.25, quick=True), B], None),  # not what was measured
        ([row("a", 0.25009), B, row(metric="seconds")], None),  # durations are not compared
    ],
)
def test_missing_new_and_other_rows_are_differences(fresh, phrase):
    phrases = [text for _, text in check.differences([A, B], fresh)]
    assert any(re.match(phrase, text) for text in phrases) if phrase else not phrases


def test_quick_runs_train_models_themselves_and_share_packages(checkout, tmp_path):
    (checkout / "p").mkdir()
    (checkout / "p/main.py").write_text(
        "import os, pathlib, sys\n"
        "for name in ('packages/fetched', 'embeddings/trained', 'encoders/trained'):\n"
        "    pathlib.Path(os.environ['ISTHMUS_CACHE'], name).mkdir(parents=True)\n"
        "sys.exit('lost')\n"
    )
    for chosen, sentence in (
        ([], r"A run has failed; .*c\.log ends with: lost"),
        ([], "maybe with runs of other code: choose another --run"),
        (["p/other"], "There is no config 'p/other': choose one of p/c"),
    ):
        with pytest.raises(UserError, match=sentence):
            check.check(tmp_path / "quick", 2, chosen)
    assert [path.name for path in (tmp_path / "cache").glob("*/*")] == ["fetched"]


def test_config_values_that_have_changed_since_a_run_are_named():
    record = records.read(render.RESULTS, "lpl/nli")
    config = {**record.config, "delta_gone": 3, "random_seeds": [7], "when_quick": {}}
    record = record._replace(config=config, stale="")
    gone = "config.delta_gone was 3, is now None"
    assert render.state(record) == f"{gone}; config.random_seeds was [7], is now [0, 1, 2, 3, 4]"
    other = record._replace(command=f"{record.command} --config.random_seeds=7")
    assert render.state(other) == gone and render.state(record._replace(stale="s")) == "s"
    constants = records.read(render.RESULTS, "lpl/constants")  # it has another's config
    constants.config["word_alignment"]["when_quick"]["num_pairs"] = []
    assert not render.state(constants._replace(stale=""))


def test_a_headline_that_selects_two_rows_is_named():
    known = Headline("accuracy of ours", "lpl/nli", {"metric": "accuracy"})
    with pytest.raises(UserError, match=r"'accuracy of ours' selects \d+ rows of lpl/nli"):
        render.headline(known)
