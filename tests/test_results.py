"""Records (docs/keep.py), their fingerprints, and the pages that are written from them."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from common.errors import UserError
from common.run import records
from common.run.records import Headline
from common.run.results import Row
from docs import fingerprints, forked, keep, plots, render

SHARED = {"experiment": "e", "dataset": "d", "metric": "mrr", "std": 0.0, "num_runs": 1}


@pytest.mark.parametrize("name", render.names())
def test_a_kept_run_is_rows_of_the_schema_on_its_papers_page(name):
    record = records.read(render.RESULTS, name)
    assert record.rows and all(isinstance(row, Row) for row in record.rows)
    assert all(np.isfinite([row.mean, row.std]).all() for row in record.rows)
    paper = name.split("/")[0]
    pages = [*render.RESULTS.glob(f"{paper}.md"), *render.RESULTS.glob(f"{paper}/*.md")]
    assert re.search(f"<!-- results:{name}[: ]", "".join(page.read_text() for page in pages))


def test_pages_are_what_the_kept_runs_say():
    wrong = [path.name for path, text in render.pages().items() if path.read_text() != text]
    assert not wrong, "run python -m docs.render"


def test_figures_are_drawn_from_the_rows_wherever_these_suffice():
    """Others show vectors or steps: of retrieval, and of training on images and words."""
    for name in render.names():
        without = {figure for figure, content in plots.drawn(name).items() if content is None}
        kind = records.read(render.RESULTS, name).config["experiment"]
        assert not without or kind in ("retrieval", "vision", "images", "words"), (name, without)


def test_the_table_of_all_rows_is_that_of_the_records():
    table = render.RESULTS / "rows.csv"
    wanted = records.frame(render.RESULTS).to_csv(index=False)
    assert table.read_text() == wanted, "run python -m docs.plots"


def row(**fields):
    return dataclasses.asdict(Row(**SHARED, **fields))


@pytest.mark.parametrize(
    "rows",
    [
        [row(method="a", mean=0.25), row(method="b", mean=0.5)],
        [row(method="a", mean=0.25, dim=3, labels={"x": 1}), row(method="a", mean=0.5)],
        [row(method="a", mean=0.25, labels={"x": 1, "y": 2}), row(method="a", mean=0.25)],
    ],
)
def test_rows_are_read_as_they_were_kept(rows, tmp_path):
    head = {"command": "c", "finished": "2026-11-22 08:00", "commit": "a", "cores": 1}
    head |= {"seconds": None, "failed": [], "quoted": "", "config": {"a": [1]}}
    (tmp_path / "p").mkdir()
    (tmp_path / "p/n.json").write_text(records.packed(head, rows))
    record = records.read(tmp_path, "p/n")
    assert [dataclasses.asdict(kept) for kept in record.rows] == rows
    assert {name: getattr(record, name) for name in head} == head


def test_parts_that_failed_are_named(tmp_path):
    (tmp_path / "parts").mkdir()
    for name, result in (("x", {"notes": {"failed": True}}), ("y", {"notes": {}}), ("z", [1])):
        (tmp_path / "parts" / f"{name}.json").write_text(json.dumps({"crc32": 0, "result": result}))
    assert keep.failed(tmp_path) == ["x"]


@pytest.mark.parametrize("failed", [True, False])
@pytest.mark.parametrize("wrong", [(0, 0), (1, 0), (0, 1)])
def test_what_a_part_states_of_itself_is_kept_beside_what_is_true(failed, wrong, tmp_path):
    (tmp_path / "parts").mkdir()
    rows = [
        {"metric": metric, "mean": value}
        for metric, value in (
            ("mrr", 0.5),
            *zip(("false_success", "false_failure"), wrong, strict=True),
        )
    ]
    notes = {"failed": failed, "probability": 0.25, "initialization": "pairs"}
    parts = {"search": (rows, notes), "other": (rows[:1], notes), "method": (rows, {})}
    for name, (rows, notes) in parts.items():
        text = json.dumps({"crc32": 0, "result": {"rows": rows, "notes": notes}})
        (tmp_path / "parts" / f"{name}.json").write_text(text)
    succeeded = failed == any(wrong)
    assert keep.stated(tmp_path) == [records.Stated("search", "pairs", 0.25, succeeded)]


RUN = """
import json, pathlib, sys
from PIL import Image
*words, run = sys.argv[1:]
run = pathlib.Path(run.removeprefix("--workdir="))
(run / "parts").mkdir(parents=True)
quick = "--config.quick" in words
rows = [ROW | {"mean": value} for value in ([QUICK] if quick else [0.75])]
(run / "results.json").write_text(json.dumps(rows))
(run / "config.json").write_text("{}")
(run / "command.txt").write_text("COMMAND")
(run / "table.md").write_text("# Title\\n\\n## First\\n\\n| new |")
Image.new("RGB", (8, 8)).save(run / "mrr.png")
"""


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Keeps the record p/n, whose run is a short program, and its fingerprint in tmp_path.

    It is called with the value of the record's quick form, and returns the folder of the record.
    """
    for module in (keep, render, fingerprints):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(render, "RESULTS", tmp_path / "docs/results")
    monkeypatch.setattr(render, "outdated", lambda record: [])
    monkeypatch.setattr(keep, "_commit", lambda: "new")
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "cache"))
    for folder in ("results/p", "figures/p"):
        (tmp_path / "docs" / folder).mkdir(parents=True)
    Image.new("RGB", (2, 2)).save(tmp_path / "docs/figures/p/n-mrr.png")
    old = row(method="a", mean=0.25)

    def written(quick):
        script = tmp_path / "script.py"
        script.write_text(RUN.replace("ROW", repr(old)).replace("QUICK", str(quick)))
        command = f"python {script} --config=p/c.py"
        script.write_text(script.read_text().replace("COMMAND", command))
        head = {"finished": "2026-11-22 08:00", "commit": "old", "cores": 1, "seconds": 3.0}
        head |= {"failed": [], "config": {}, "command": command, "quoted": "## First\n\n| old |"}
        (tmp_path / "docs/results/p/n.json").write_text(records.packed(head, [old]))
        return tmp_path / "docs/results"

    return written


def test_a_record_that_no_longer_holds_is_made_again_with_its_figures_and_quotes(
    kept, tmp_path, capsys
):
    results = kept(quick=0.5)
    keep.make_fingerprint(tmp_path / "made", "p/n", None, jobs=2)
    changes = keep.check(tmp_path / "same", jobs=2)
    assert changes == {"p/n": []} and keep.report(changes, allow_stale=False)
    keep.all_again(tmp_path / "runs", 2, 2, changes)
    assert records.read(results, "p/n").commit == "old"  # it holds: nothing is made

    kept(quick=0.6)
    changes = keep.check(tmp_path / "other", jobs=1)
    assert not keep.report(changes, allow_stale=True)
    assert "a mrr (d): mean 0.5 -> 0.6, std 0 -> 0" in capsys.readouterr().out
    keep.all_again(tmp_path / "runs", 2, 2, changes)
    again = records.read(results, "p/n")
    assert again.rows[0].mean == 0.75 and again.commit == "new" and again.cores == 2
    assert again.quoted == "## First\n\n| new |" and again.seconds is not None
    assert Image.open(tmp_path / "docs/figures/p/n-mrr.png").size == (8, 8)
    assert keep.check(tmp_path / "third", jobs=1) == {"p/n": []}


def test_a_change_of_numbers_that_is_meant_marks_the_record_as_stale(kept, tmp_path, monkeypatch):
    kept(quick=0.5)
    keep.make_fingerprint(tmp_path / "made", "p/n", None, jobs=1)
    kept(quick=0.6)
    monkeypatch.setattr(render, "outdated", lambda record: ["rounds"])
    changes = keep.check(tmp_path / "quick", jobs=1)
    assert changes["p/n"][0] == "config.rounds has changed"
    keep.accept(changes, tmp_path / "quick", "ties count half")
    changes = keep.check(tmp_path / "quick", jobs=1)
    assert changes == {"p/n": []} and "stale since new: ties count half" in render.runs()
    assert keep.report(changes, allow_stale=True) and not keep.report(changes, allow_stale=False)
    kept(quick=0.7)
    keep.accept(keep.check(tmp_path / "again", jobs=1), tmp_path / "again", "and so on")
    assert "stale since new: and so on; before: ties count half" in render.runs()


@pytest.fixture
def two_methods(kept, tmp_path):
    """A record of the methods a and b, and a function that makes a run of some of its methods.

    The function takes the rows and values that its config has beside the record's.
    """
    old = [row(method=name, mean=0.25) for name in "ab"]
    head, _ = records.unpacked((kept(quick=0.5) / "p/n.json").read_text())
    head |= {"failed": ["x-a-seed0", "x-b-seed0"], "stated": [], "quoted": ""}
    head |= {"config": {"methods": ["a", "b"], "k": 10, "a": {"steps": 1}}}
    (tmp_path / "docs/results/p/n.json").write_text(records.packed(head, old))

    def run(rows, **values):
        folder = tmp_path / "run"
        (folder / "parts").mkdir(parents=True)
        (folder / "parts/x-a-seed0.json").write_text('{"result": {"rows": [], "notes": {}}}')
        config = {"methods": ["a"], "k": 10, "a": {"steps": 2}} | values
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "results.json").write_text(json.dumps(rows))
        (folder / "command.txt").write_text(f"{head['command']} --config.methods=a")
        (folder / "table.md").touch()
        return folder

    return run


def test_methods_that_were_run_again_alone_replace_their_own_rows(two_methods):
    run = two_methods([row(method="a", mean=0.75)])
    before = records.read(render.RESULTS, "p/n")
    keep.keep(run, "p/n", {"commit": "new", "cores": 2, "seconds": 3.0}, (), "", ["a"])
    record = records.read(render.RESULTS, "p/n")
    assert [(x.method, x.mean) for x in record.rows] == [("a", 0.75), ("b", 0.25)]
    assert record.command == before.command and record.config["methods"] == ["a", "b"]
    assert record.config["a"] == {"steps": 2} and record.failed == ["x-b-seed0"]
    assert record.seconds is None
    others = "2 cores; rows of other methods: 2026-11-22, old, 1 core."
    assert record.provenance().endswith(others)


def test_methods_that_do_not_fit_into_a_record_are_not_kept(two_methods):
    before = (render.RESULTS / "p/n.json").read_text()
    run = two_methods([row(method="c", mean=0.5)], k=20)
    made = {"commit": "new", "cores": 2, "seconds": 3.0}
    with pytest.raises(UserError, match=r"fit into p/n, from which config\.k differs"):
        keep.keep(run, "p/n", made, (), "", ["a"])
    with pytest.raises(UserError, match=r'fit into p/n, which has no row .*"method": "c"'):
        keep.keep(run, "p/n", made, (), "", ["a", "k"])
    with pytest.raises(UserError, match="no record 'p/m': leave out --methods"):
        keep.keep(run, "p/m", made, (), "", ["a"])
    assert (render.RESULTS / "p/n.json").read_text() == before


def test_only_the_named_methods_of_a_record_are_run_again(monkeypatch, two_methods, tmp_path):
    run = two_methods([row(method="a", mean=0.75)])
    commands = []
    monkeypatch.setattr(keep.subprocess, "run", lambda command, **_: commands.append(command))
    (tmp_path / "runs/p").mkdir(parents=True)
    run.rename(tmp_path / "runs/p/n")
    keep.all_again(tmp_path / "runs", 1, 1, {"p/n": ["another value"]}, ["a"])
    assert "--config.methods=a" in commands[0]
    assert records.read(render.RESULTS, "p/n").rows[0].mean == 0.75


def test_quick_runs_of_other_code_are_not_compared(kept, tmp_path, monkeypatch):
    kept(quick=0.5)
    keep.make_fingerprint(tmp_path / "made", "p/n", None, jobs=1)
    keep.check(tmp_path / "quick", jobs=1)
    monkeypatch.setattr(fingerprints, "digest", lambda: "changed")
    with pytest.raises(UserError, match="quick runs of other code: choose another --run"):
        keep.check(tmp_path / "quick", jobs=1)


def test_quick_runs_that_fail_are_named_with_what_they_said_last(kept, tmp_path):
    kept(quick=0.5)
    keep.make_fingerprint(tmp_path / "made", "p/n", None, jobs=1)
    kept(quick="{}['lost']")
    with pytest.raises(UserError, match=r"1 quick run failed; .*\.log ends with: KeyError: 'lost'"):
        keep.check(tmp_path / "quick", jobs=1)
    kept(quick=0.5)
    assert keep.check(tmp_path / "again", jobs=2) == {"p/n": []}


def test_a_run_that_cannot_be_imported_says_so_in_its_log_and_the_next_one_is_run(tmp_path):
    log, script = tmp_path / "run.log", tmp_path / "script.py"
    script.write_text("import sys\nprint(sys.argv[1:])\n")
    with forked.Server(os.environ) as server:
        assert server.run(["-m", "missing.main"], log) == 1
        assert "No module named 'missing'" in log.read_text()
        assert server.run([str(script), "--a=1"], log) == 0
        assert log.read_text() == "['--a=1']\n"


def test_a_record_says_how_long_it_takes_from_an_empty_cache(kept):
    before = records.read(kept(quick=0.5), "p/n")
    keep.keep_empty_cache_seconds("p/n", 170.0)
    assert records.read(render.RESULTS, "p/n") == before._replace(empty_cache_seconds=170.0)
    assert "| 3 s  | 170 s " in render.runs()
    with pytest.raises(UserError, match="no record 'p/m': give --name=PAPER/NAME"):
        keep.keep_empty_cache_seconds("p/m", 170.0)


def test_a_record_without_a_fingerprint_does_not_hold(kept, tmp_path):
    kept(quick=0.5)
    (phrases,) = keep.check(tmp_path / "quick", jobs=1).values()
    assert phrases == ["it has no fingerprint: make one with --fingerprint"]


@pytest.mark.network
@pytest.mark.slow
def test_a_changed_constant_makes_the_records_of_its_method_fall_and_no_others(tmp_path):
    """In a copy of the tree. The bisections of the bootstrap's anchors are 60; 2 are too few."""
    tree = tmp_path / "tree"
    ignored = shutil.ignore_patterns(".*", "runs", "figures", "tests", "*.egg-info", "__pycache__")
    shutil.copytree(render.ROOT, tree, ignore=ignored)
    shutil.copytree(render.ROOT / "tests", tree / "tests", ignore=ignored)
    method = tree / "anchor_opt/methods/anchors.py"
    text = method.read_text()
    assert text.count("BISECTIONS = 60") == 1
    method.write_text(text.replace("BISECTIONS = 60", "BISECTIONS = 2"))

    others = ("anchor_opt/spaces", "embed_match/ensemble")
    names = ",".join(["anchor_opt/few_pairs", *others])
    command = [sys.executable, "-m", "docs.keep", "--check", "--run=runs", f"--name={names}"]
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
        ([A, B | {"mean": 0.6}], "b mrr (d): mean 0.5 -> 0.6"),
        ([A, B | {"std": 0.1}], "b mrr (d): mean 0.5 -> 0.5, std 0 -> 0.1"),
        ([A, B | {"mean": float("nan")}], "b mrr (d): mean 0.5 -> nan"),
        ([A | {"mean": 0.251}, B], "a mrr (d): mean 0.25 -> 0.251"),
        ([A | {"num_runs": 2}, B], "new: a mrr (d)"),
        ([B, A], None),
        ([A | {"quick": True}, B | {"paper_value": 0.9}], None),  # not what was measured
        ([A | {"mean": 0.2501}, B | {"mean": 0.53}], None),
    ],
)
def test_missing_new_and_other_rows_are_differences(fresh, phrase):
    rounding = [A | {"mean": 0.25001}, B | {"mean": 0.49}]
    known = fingerprints.with_tolerances([A, B], [rounding, [A, B]])
    assert [x["tolerance"] for x in known] == pytest.approx([1e-4, 0.03])
    phrases = fingerprints.differences(known, fresh)
    assert any(p.startswith(phrase) for p in phrases) if phrase else not phrases


@pytest.mark.parametrize(
    ("metric", "num_items", "tolerance"),
    [
        *((x, 50, 0.06) for x in ("knn_accuracy", "p_at_5", "relative_p_at_1", "top_1", "ot")),
        ("accuracy", None, 1e-4),
        ("mrr", 50, 1e-4),
        ("ot_cost", 50, 1e-4),
    ],
)
def test_a_fraction_of_items_may_move_by_an_item(metric, num_items, tolerance):
    row = A | {"metric": metric, "num_items": num_items}
    (known,) = fingerprints.with_tolerances([row], [[row]])
    assert known["tolerance"] == pytest.approx(tolerance)


def test_tolerances_cover_the_rows_of_another_processor(monkeypatch, tmp_path):
    record = records.read(render.RESULTS, "lpl/nli")
    monkeypatch.setattr(fingerprints, "run_all", lambda *_: None)
    monkeypatch.setattr(fingerprints, "rows_of", lambda _: [A, B])
    elsewhere = [A, B | {"mean": 0.52}]
    command = fingerprints.quick_command(record)
    made = fingerprints.make(record, command, "", tmp_path, 1, [elsewhere])
    assert not fingerprints.differences(made.rows, elsewhere)
    assert [row["tolerance"] for row in made.rows] == pytest.approx([1e-4, 0.06])


def test_without_a_fingerprint_of_the_same_quick_form_no_tolerance_is_widened(kept, tmp_path):
    kept(quick=0.5)
    with pytest.raises(UserError, match=r"p/n has no fingerprint of this quick form: .* --widen"):
        keep.make_fingerprint(tmp_path / "made", "p/n", None, jobs=1, widen=True)


def test_quick_runs_train_models_themselves_and_share_packages(monkeypatch, tmp_path):
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "users"))
    script = tmp_path / "script.py"
    script.write_text(
        "import os, pathlib, sys\n"
        "for name in ('packages/fetched', 'embeddings/trained', 'encoders/trained'):\n"
        "    path = pathlib.Path(os.environ['ISTHMUS_CACHE'], name)\n"
        "    path.parent.mkdir(exist_ok=True)\n"
        "    path.touch()\n"
        "run = pathlib.Path(sys.argv[-1].removeprefix('--workdir='))\n"
        "run.mkdir()\n"
        "(run / 'results.json').write_text('[]')\n"
    )
    for name in ("first", "second"):  # the second one finds the links
        command = f"python {script} --config=p/{name}.py"
        fingerprints.run_all([command], tmp_path / "quick", "quick", 1)
    files = [path for path in (tmp_path / "users").rglob("*") if path.is_file()]
    assert files == [tmp_path / "users/packages/fetched"]


def test_the_quick_form_of_a_command_leaves_out_what_quick_runs_make_smaller():
    record = records.read(render.RESULTS, "wasserstein_embed/graphs_block")
    assert fingerprints.quick_command(record) == (
        "python -m wasserstein_embed.main --config=configs/wasserstein_embed/graphs.py "
        "--config.graph=block --config.recipes=tuned --config.quick"
    )


def test_nothing_is_kept_without_the_named_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(keep, "ROOT", tmp_path)
    (tmp_path / "results.json").touch()
    with pytest.raises(UserError, match=r"no .*mrr\.png: give --figures"):
        keep.keep(tmp_path, "p/n", {}, ("mrr",), "")
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_quoted_parts_of_a_table_keep_their_headings():
    table = "## a\n\n|1|\n\nNear b:\n\n|2|\n\n## c\n\nNear:\n\n|3|\n\n## Near d\n\nof e\n\n|4|\n"
    expected = "## a\n\nNear b:\n\n|2|\n\n## c\n\nNear:\n\n|3|\n\n## Near d\n\nof e\n\n|4|"
    assert keep.quoted(table, "Near") == expected


def test_figures_are_compressed_without_a_visible_difference(tmp_path):
    gradient = np.linspace(0, 255, 64 * 64 * 3).reshape(64, 64, 3).astype(np.uint8)
    Image.fromarray(gradient).save(tmp_path / "f.png")
    (tmp_path / "g.png").write_bytes(keep.compressed(tmp_path / "f.png"))
    shown = np.asarray(Image.open(tmp_path / "g.png").convert("RGB")).astype(int)
    assert np.abs(shown - gradient).max() < 16


def test_config_values_that_have_changed_since_a_run_are_named():
    record = records.read(render.RESULTS, "lpl/nli")
    before = render.outdated(record)
    record.config["delta_gone"] = 3
    record.config["random_seeds"] = [7]
    assert set(render.outdated(record)) - set(before) == {"delta_gone", "random_seeds"}
    for seeds in ("7", '"(7,)"'):
        again = record._replace(command=f"{record.command} --config.random_seeds={seeds}")
        assert set(render.outdated(again)) - set(before) == {"delta_gone"}


def test_a_headline_that_selects_two_rows_is_named():
    headline = Headline("accuracy of ours", "lpl/nli", {"metric": "accuracy"})
    with pytest.raises(UserError, match=r"'accuracy of ours' selects \d+ rows of lpl/nli"):
        render._row(headline, headline.row)


def test_filling_a_page_twice_changes_nothing(tmp_path):
    text = "a\n<!-- results:data -->\nstale text\n<!-- end -->\nb"
    filled = render.fill(text, tmp_path / "page.md")
    assert "stale text" not in filled and "multiwordnet" in filled
    assert render.fill(filled, tmp_path / "page.md") == filled
