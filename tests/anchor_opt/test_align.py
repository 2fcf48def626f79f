"""The command line for one's own embeddings: real small runs, and everything that may be wrong."""

import fcntl
import gc
import gzip
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from absl.testing import flagsaver

from anchor_opt import align, align_files, align_report, api, defaults
from anchor_opt.align_run import Source
from common import alignment, cli
from common.data import vectors
from common.errors import UserError
from common.workdir import replacing

ROOT = Path(__file__).parents[2]
SEEDS = 24  # two folds of as many as in test_api.py: the same programs


def spaces():
    """A space, and another of more dimensions and words, rotated, shuffled and with noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 12)) * np.linspace(2, 0.5, 12)
    y = rng.normal(size=(260, 16)) * 0.3
    rotation = np.linalg.qr(rng.normal(size=(16, 16)))[0][:12]
    y[:240] = x @ rotation + 0.05 * rng.normal(size=(240, 16))
    order = np.concatenate([rng.permutation(250), np.arange(250, 260)])
    return x.astype(np.float32), (y + 1)[order].astype(np.float32), np.argsort(order)[:240]


def lines(words, table):
    rows = [f"{w} {' '.join(map(repr, r.tolist()))}" for w, r in zip(words, table, strict=True)]
    return "".join(row + "\n" for row in rows).encode()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    x, y, truth = spaces()
    words = [f"x{i}" for i in range(len(x))]
    (folder / "a.vec").write_bytes(f"{len(x)} 12\n".encode() + lines(words, x))
    back = {int(row): f"y{i}" for i, row in enumerate(truth)}
    target_words = [back.get(row, f"only{row}") for row in range(len(y))]
    np.savez(folder / "b.npz", vectors=y, words=np.array(target_words))
    np.savez(folder / "bare.npz", vectors=x)
    pairs = [f"x{i} y{i}\n" for i in range(SEEDS)]
    (folder / "pairs.txt").write_text("".join(pairs) + "unknown y50\n")
    (folder / "rows.txt").write_text("".join(f"{i}\ty{i}\n" for i in range(SEEDS)))
    return folder


def run(monkeypatch, *arguments):
    """The command line within this process: its exit code."""
    monkeypatch.setattr(sys, "argv", ["align", *map(str, arguments)])
    # It is set up once; the flags of the one run must not stay for the next.
    with flagsaver.flagsaver(), pytest.raises(SystemExit) as left:
        cli.run(align.main)
    return left.value.code


def common_arguments(files, out):
    return f"--target={files / 'b.npz'}", f"--out={out}", "--folds=2"


@pytest.fixture(scope="module")
def whole(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    sources = f"--source={files / 'a.vec'}", f"--source={files / 'bare.npz'}"
    seeds = f"--seeds={files / 'pairs.txt'}", f"--seeds={files / 'rows.txt'}"
    with pytest.MonkeyPatch.context() as patch:
        code = run(patch, *sources, *seeds, *common_arguments(files, out), "--anchors=30")
    assert not code
    return out


def table(path):
    return [line.split("\t") for line in path.read_text().splitlines()[1:]]


def test_a_run_leaves_everything(whole, files):
    for name in ("a", "bare"):
        folder = whole / name
        anchors = table(folder / "anchors.tsv")
        assert np.mean([s.lstrip("x") == t[1:] for s, t, _ in anchors]) > 0.95
        confidence = [float(c) for _, _, c in anchors]
        assert confidence == sorted(confidence, reverse=True) and confidence[-1] >= 0
        dictionary = table(folder / "dictionary.tsv")
        assert len(dictionary) == 240
        mutual = [int(row[3]) for row in dictionary]
        assert mutual == sorted(mutual, reverse=True) and sum(mutual) == len(anchors)
        scores = [float(row[2]) for row in dictionary if row[3] == "1"]
        assert scores == sorted(scores, reverse=True)
        aligner = alignment.load(folder / "map.npz")
        assert (aligner.moving, aligner.fixed) == (name, "b")
        moved = vectors.read(folder / "aligned.npz")
        np.testing.assert_allclose(aligner.apply(spaces()[0]), moved.vectors, atol=1e-5)
        text = vectors.read(folder / "aligned.vec")
        assert text.words == moved.words
        np.testing.assert_allclose(text.vectors, moved.vectors, atol=1e-5)
        with np.load(folder / "relative.npz") as relative:
            assert relative["source"].shape == (240, 30) and relative["target"].shape == (260, 30)
            s, t = relative["anchors"].T
            agreement = (relative["source"][s] * relative["target"][t]).sum(1)
        assert agreement.min() > 0.95
        assert (whole / f"{name}.png").stat().st_size > 0
    target = vectors.read(whole / "target.npz").vectors
    np.testing.assert_allclose(np.linalg.norm(target, axis=1), 1, atol=1e-5)
    report = (whole / "report.md").read_text()
    assert "## a" in report and "## bare" in report and f"{SEEDS} held-out seeds" in report
    assert "P@1 1.000" in report and "1 pairs for 'a' have a word that a space lacks" in report
    assert "failed" in report and "Warning.** The alignment" not in report
    assert not list(whole.parent.rglob("*.half"))


def test_the_map_moves_new_vectors(whole, files, tmp_path, monkeypatch, capsys):
    x = spaces()[0]
    (tmp_path / "new.vec").write_bytes(lines(["new", "newer"], x[:2]))
    use = f"--apply={tmp_path / 'new.vec'}", f"--map={whole / 'a' / 'map.npz'}"
    for suffix in ("npz", "vec"):
        assert not run(monkeypatch, *use, f"--out={tmp_path / 'moved'}.{suffix}")
        assert "vectors of 'a' moved into the space of 'b'" in capsys.readouterr().out
        found = vectors.read(tmp_path / f"moved.{suffix}")
        assert found.words == ["new", "newer"]
        before = vectors.read(whole / "a" / "aligned.npz").vectors[:2]
        np.testing.assert_allclose(found.vectors, before, atol=1e-5)


def test_a_run_that_is_done_is_shown_again(whole, files, monkeypatch, capsys):
    sources = f"--source={files / 'a.vec'}", f"--source={files / 'bare.npz'}"
    seeds = f"--seeds={files / 'pairs.txt'}", f"--seeds={files / 'rows.txt'}"
    again = (*sources, *seeds, *common_arguments(files, whole), "--anchors=30")
    (whole / "search").mkdir()  # of a run killed at its very end
    assert not run(monkeypatch, *again)
    assert not (whole / "search").exists()
    assert capsys.readouterr().out.strip() == (whole / "report.md").read_text().strip()
    assert run(monkeypatch, *again, "--rows=100") == 2
    assert "rows was 20000, is now 100" in capsys.readouterr().err


def test_a_run_that_is_stopped_leaves_no_results_and_goes_on(whole, files, tmp_path, monkeypatch):
    source = f"--source={files / 'bare.npz'}", f"--seeds={files / 'rows.txt'}"
    arguments = (*source, *common_arguments(files, tmp_path / "out"), "--anchors=30")

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(align_report, "join", stop)
        assert run(patch, *arguments) == 2
    gc.collect()  # within one process: the lock goes with the run
    assert [path.name for path in tmp_path.iterdir()] == ["out.half"]
    searched = (tmp_path / "out.half" / "search" / "bare" / "metrics.jsonl").read_text()
    with monkeypatch.context() as patch:
        patch.setattr(api, "held_out", stop)  # kept from the first time
        assert not run(patch, *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    for name in ("anchors.tsv", "dictionary.tsv"):
        found = (tmp_path / "out" / "bare" / name).read_bytes()
        assert found == (whole / "bare" / name).read_bytes()
    assert '"part": "align/sharpen"' in searched


def test_a_second_run_with_one_out_is_refused(files, tmp_path, monkeypatch, capsys):
    source = f"--source={files / 'bare.npz'}", f"--seeds={files / 'rows.txt'}"
    half = tmp_path / "out.half"
    half.mkdir()
    with (half / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run(monkeypatch, *source, *common_arguments(files, tmp_path / "out")) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert re.search(r"Another process is running in .*out\.half: wait for it or .* --out", said)
    assert [path.name for path in half.iterdir()] == [".lock"]
    moved = tmp_path / "moved.vec"
    with replacing(moved), pytest.raises(UserError, match=r"Cannot write .*moved\.vec \(another"):
        align_files.write_space(moved, ["a"], np.ones((1, 2)))


A = "--source={good}/a.vec"
B = "--target={good}/b.npz"
APPLY = "--apply={good}/a.vec"
MAP = "--map={done}/a/map.npz"
GOOD = lines([f"w{i}" for i in range(30)], np.random.default_rng(1).normal(size=(30, 3)))


def archive(**arrays):
    def write(path):
        np.savez(path, **arrays)

    return write


def last_line(line):
    return GOOD + line


# What is wrong: (content of the file {bad}, its name, the arguments, what the sentence says).
WRONG = {
    "missing file": (None, "none.vec", ["--source={bad}", B], "no file .*none.vec"),
    "empty": (b"", "x.vec", ["--source={bad}", B], "holds no vectors"),
    "a folder": ("folder", "x.vec", ["--source={bad}", B], "Is a directory"),
    "ragged": (last_line(b"r 1 2\n"), "x.vec", ["--source={bad}", B], "fewer than the 3"),
    "no number": (last_line(b"r 1 2 z\n"), "x.vec", ["--source={bad}", B], "could not convert"),
    "NaN": (last_line(b"r 1 nan 2\n"), "x.vec", ["--source={bad}", B], "NaN"),
    "infinite": (last_line(b"r 1 inf 2\n"), "x.vec", ["--source={bad}", B], "infinite"),
    "zeros": (last_line(b"r 0 0 0\n"), "x.vec", ["--source={bad}", B], "zeros alone"),
    "word twice": (last_line(b"w3 1 2 3\n"), "x.vec", ["--source={bad}", B], "'w3' has been"),
    "rows cut": (b"40 3\n" + GOOD, "x.vec", ["--source={bad}", B], "has 30 rows"),
    "binary": (b"\x00\xff\xfe" * 99, "x.vec", ["--source={bad}", B], "not UTF-8"),
    "unknown suffix": (b"\x89HDF\xff" * 9, "x.h5", ["--source={bad}", B], "suffix of its"),
    "cut gzip": (gzip.compress(GOOD)[:-9], "x.vec.gz", ["--source={bad}", B], "Cannot read"),
    "cut .npz": (b"PK\x03\x04 cut", "x.npz", ["--source={bad}", B], "is cut, is no numpy"),
    "pickle": (pickle.dumps([1.0]), "x.npz", ["--source={bad}", B], "pickled"),
    "pickled words": (
        archive(vectors=np.ones((30, 2)), words=np.array(["a"] * 30, object)),
        "x.npz",
        ["--source={bad}", B],
        "pickled",
    ),
    "no vectors": (archive(a=np.ones(2), b=np.ones(2)), "x.npz", ["--source={bad}", B], "vectors"),
    "one dimension": (archive(vectors=np.ones(30)), "x.npz", ["--source={bad}", B], "shape"),
    "complex": (archive(vectors=np.ones((30, 2), complex)), "x.npz", ["--source={bad}", B], "real"),
    "NaN in .npz": (
        archive(vectors=np.full((30, 2), np.nan)),
        "x.npz",
        ["--source={bad}", B],
        "NaN",
    ),
    "tab in a word": (
        archive(vectors=np.eye(30), words=np.array([f"a\t{i}" for i in range(30)])),
        "x.npz",
        ["--source={bad}", B],
        "tab or line end",
    ),
    "constant": (archive(vectors=np.ones((30, 2))), "x.npz", ["--source={bad}", B], "mean of the"),
    "few rows": (b"a 1 2\nb 2 1\nc 3 1\n", "x.vec", ["--source={bad}", B], "at least 20"),
    "bad target": (b"", "x.vec", [A, "--target={bad}"], "holds no vectors"),
    "few words": (b"a\nb\n", "w.txt", [A, B, "--target_words={bad}"], "2 words for the 260"),
    "no target": (b"", "x", [A], "Give --source and --target"),
    "no source": (b"", "x", [B], "Give --source and --target"),
    "same names": (GOOD, "b.vec", ["--source={bad}", B], "rename the file"),
    "name of ours": (GOOD, "search.vec", ["--source={bad}", B], "rename the file"),
    "seeds missing": (None, "p.txt", [A, B, "--seeds={bad}"], "no file .*p.txt"),
    "seeds empty": (b"\n", "p.txt", [A, B, "--seeds={bad}"], "empty"),
    "seed columns": (b"x1 y1 z\n", "p.txt", [A, B, "--seeds={bad}"], "3 columns"),
    "seeds unknown": (b"u v\nw x\n", "p.txt", [A, B, "--seeds={bad}"], "None of the 2 pairs"),
    "seeds reversed": (b"y1 x1\n", "p.txt", [A, B, "--seeds={bad}"], "source, then"),
    "word mapped twice": (b"x1 y1\nx1 y2\n", "p.txt", [A, B, "--seeds={bad}"], "'y1' and with"),
    "target twice": (b"x1 y1\nx2 y1\n", "p.txt", [A, B, "--seeds={bad}"], "keep one"),
    "seeds binary": (b"\xff\xfe x\n", "p.txt", [A, B, "--seeds={bad}"], "not UTF-8"),
    "two seeds files": (
        b"x1 y1\n",
        "p.txt",
        [A, B, "--seeds={bad}", "--seeds={bad}"],
        "2 --seeds for 1 --source",
    ),
    "one fold": (b"", "x", [A, B, "--folds=1"], "leaves all seeds out"),
    "no method": (b"", "x", [A, B, "--method=magic"], "method"),
    "no rows": (b"", "x", [A, B, "--rows=0"], "rows"),
    "rows no number": (b"", "x", [A, B, "--rows=many"], "rows"),
    "flag unknown": (b"", "x", [A, B, "--sauce=x"], "sauce"),
    "stray word": (b"", "x", [A, B, "stray"], "'stray' is not a flag"),
    "out is a file": (b"", "x", [A, B, "--out={bad}"], "holds no alignment"),
    "out in a file": (b"", "x", [A, B, "--out={bad}/out"], "Cannot write|Not a directory"),
    "out of others": ("folder", "x", [A, B, "--out={bad}/.."], "holds no alignment"),
    "apply, no map": (b"", "x", [APPLY], "needs --map"),
    "map, no apply": (b"", "x", [MAP], "needs --apply"),
    "apply and source": (b"", "x", [APPLY, MAP, A], "reads no --source"),
    "map missing": (None, "m.npz", [APPLY, "--map={bad}", "--out={out}.npz"], "aligner .*path"),
    "no map": (GOOD, "m.npz", [APPLY, "--map={bad}", "--out={out}.npz"], "not an aligner"),
    "map of other arrays": (
        archive(matrix=np.eye(2)),
        "m.npz",
        [APPLY, "--map={bad}", "--out={out}.npz"],
        "not an aligner",
    ),
    "other dimension": (
        GOOD,
        "x.vec",
        ["--apply={bad}", MAP, "--out={out}.npz"],
        "has 12 dimensions, not 3",
    ),
    "applied to nothing": (
        None,
        "x.vec",
        ["--apply={bad}", MAP, "--out={out}.npz"],
        "no file",
    ),
    "out of apply": (b"", "x", [APPLY, MAP, "--out={out}.pt"], "neither .npz nor .vec"),
    "out of apply there": (b"1", "x.vec", [APPLY, MAP, "--out={bad}"], "is there already"),
}


@pytest.mark.parametrize(("content", "name", "arguments", "says"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_one_sentence(
    content, name, arguments, says, whole, files, tmp_path, monkeypatch, capfd
):
    (tmp_path / "in").mkdir()
    bad = tmp_path / "in" / name
    if content == "folder":
        bad.mkdir()
    elif callable(content):
        content(bad)
    elif content is not None:
        bad.write_bytes(content)
    out = tmp_path / "out"
    places = {"good": files, "bad": bad, "out": out, "done": whole}
    if not any("--out" in argument for argument in arguments):
        arguments = [*arguments, "--out={out}"]
    assert run(monkeypatch, *(argument.format(**places) for argument in arguments)) == 2
    said = [s for s in capfd.readouterr().err.splitlines() if s and not re.match(r"I\d{4} ", s)]
    assert len(said) == 1 and "Traceback" not in said[0]
    assert re.search(says, said[0]), said[0]
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert [path.name for path in bad.parent.iterdir()] == [name] * (content is not None)


def test_no_out_and_help():
    module = [sys.executable, "-m", "anchor_opt.align"]
    done = subprocess.run(module, cwd=ROOT, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 2 and "no --out" in done.stderr and "Traceback" not in done.stderr


def test_unrelated_spaces_end_in_a_report_that_says_so(
    files, tmp_path, monkeypatch, capsys, caplog
):
    """No seeds, and nothing in common: all files are there, and the first thing said is failure."""
    noise = np.random.default_rng(5).normal(size=(240, 12)).astype(np.float32)
    np.savez(tmp_path / "noise.npz", vectors=noise)
    config = defaults.config()
    config.start.words, config.start.epsilon, config.start.steps = (200,), (0.02,), 60
    monkeypatch.setattr(defaults, "config", lambda: config)
    out = tmp_path / "out"
    source = f"--source={tmp_path / 'noise.npz'}"
    assert not run(monkeypatch, source, *common_arguments(files, out), "--anchors=30")
    said = capsys.readouterr()
    failure = "The alignment of 'noise' has failed: its objective"
    assert f"**Warning.** {failure}" in said.out and "do not trust these results" in said.out
    assert failure in caplog.text
    report = (out / "report.md").read_text()
    assert said.out.strip() == report.strip() and re.search(r"\| failed +\| YES ", report)
    assert (out / "noise" / "map.npz").exists()


def test_failure_is_said_plainly(files):
    source = Source("a", vectors.read(files / "a.vec"), None)
    found = SimpleNamespace(failed=True, objective=0.2, chance=0.19)
    first, second = align_report.warnings(source, found, np.full(5, 10))
    assert "'a' has failed: its objective 0.200 is no better than from wrong seeds (0.190)" in first
    assert "No held-out seed of 'a'" in second
