"""isthmus align, a run that is stopped and resumed and its files, and `discover` of arrays."""

import dataclasses
import gc
import html
import itertools
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from common import alignment, likeness
from common.data.readers import pair_files, vector_files
from common.errors import UserError
from common.linear import unit
from isthmus import search
from isthmus.align import discovery, report
from isthmus.align import files as align_files
from isthmus.align.command import name_spaces
from isthmus.search import initialization
from tests import commands
from tests.samples import normal, rotated_spaces, unit_rows

NUM_PAIRS = 30  # each of two folds has 15, as many as the search from wrong pairs


def lines(words, table):
    rows = [f"{w} {' '.join(map(repr, r.tolist()))}" for w, r in zip(words, table, strict=True)]
    return "".join(row + "\n" for row in rows).encode()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    x, y, truth = rotated_spaces()
    words = [f"x{i}" for i in range(len(x))]
    (folder / "a.vec").write_bytes(f"{len(x)} 12\n".encode() + lines(words, x))
    names = {int(row): f"y{i}" for i, row in enumerate(truth)}
    target_words = [names.get(row, f"only{row}") for row in range(len(y))]
    np.savez(folder / "b.npz", vectors=y, words=np.array(target_words))
    np.savez(folder / "bare.npz", vectors=x)
    np.savez(folder / "noise.npz", vectors=normal(5, 240, 12))
    pairs = [f"x{i} y{i}\n" for i in range(NUM_PAIRS)]
    others = "x0 y100\nx0 y101\nx1 y100\n"  # further translations, as in MUSE's dictionaries
    (folder / "pairs.txt").write_text("".join(pairs) + "unknown y50\n" + others)
    (folder / "rows.txt").write_text("".join(f"{i}\ty{i}\n" for i in range(NUM_PAIRS)))
    return folder


def run(monkeypatch, *arguments):
    return commands.run(monkeypatch, "isthmus.align", *arguments)


def of(files, out, *names):
    """Arguments: sources and pairs by name, target and output."""
    given = []
    for name in names:
        flag = "pairs" if name.endswith(".txt") else "source"
        given.append(f"--{flag}={files / name}")
    return *given, f"--target={files / 'b.npz'}", f"--out={out}", "--folds=2", "--anchors=30"


ALL = ("a.vec", "bare.npz", "noise.npz", "pairs.txt", "rows.txt", "rows.txt")


def stop(*_):
    raise KeyboardInterrupt


@pytest.fixture(scope="module", autouse=True)
def fewer_steps():
    """Of the initializations, which tests/frontier/test_methods.py tries, the first alone."""
    every = initialization.candidates
    few = search.Settings(
        steps=search.Steps(search_steps=8, group_steps=10, group_reweights=(1.0,)),
        start=initialization.Settings(num_draws=4, num_restarts=4),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discovery, "SETTINGS", few)
        patch.setattr(initialization, "candidates", lambda *data: itertools.islice(every(*data), 1))
        yield


@pytest.fixture(scope="module")
def stopped(files, tmp_path_factory):
    """A run that is stopped before its report, the log of self-learning, and its tables."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "volume").mkdir()
    out = folder / "out"
    out.symlink_to(folder / "volume")  # which no other folder can replace, as a mounted one
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "document", stop)
        assert run(patch, *of(files, out, *ALL)) == 2
    gc.collect()  # releases the lock of the workdir, which is held in the same process
    log = (out / "learning" / "bare" / "metrics.jsonl").read_text()
    assert not (out / "report.md").exists()
    return out, log, {path: path.read_bytes() for path in out.glob("*/*.tsv")}


@pytest.fixture(scope="module")
def finished(files, stopped):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discovery, "held_out", stop)  # its result is stored, so it is not called
        assert not run(patch, *of(files, stopped[0], *ALL))
    return stopped[0]


def table(path):
    return [line.split("\t") for line in path.read_text().splitlines()[1:]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a", "bare"])
def test_each_source_gets_anchors_dictionary_map_and_vectors(finished, name):
    folder = finished / name
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
    assert (aligner.source, aligner.target) == (name, "b") and aligner.profile is not None
    aligned = vector_files.read(folder / "aligned.npz")
    mapped_source = unit(np.asarray(aligner.apply(rotated_spaces()[0])))
    np.testing.assert_allclose(aligned.vectors, mapped_source, atol=1e-5)
    text = vector_files.read(folder / "aligned.vec")
    assert text.words == aligned.words
    np.testing.assert_allclose(text.vectors, aligned.vectors, atol=1e-5)
    with np.load(folder / "relative.npz") as relative:
        assert relative["source"].shape == (240, 30) and relative["target"].shape == (260, 30)
        s, t = relative["anchors"].T
        assert (relative["source"][s] * relative["target"][t]).sum(1).mean() > 0.95
    assert (folder / "figure.png").stat().st_size > 0


@pytest.mark.slow
def test_the_report_has_every_source_and_the_held_out_pairs(finished):
    target = vector_files.read(finished / "target.npz").vectors
    np.testing.assert_allclose(np.linalg.norm(target, axis=1), 1, atol=1e-5)
    text = (finished / "report.md").read_text()
    assert "## a" in text and "## bare" in text and f"{NUM_PAIRS} held-out pairs" in text
    assert "P@1 1.000" in text and "1 known pairs of 'a' were left out" in text
    assert re.search(r"\| other translations, not fitted to +\| 3: x0 / y100, x0 / y101, x1", text)
    assert text.count("Warning.** The alignment of") == 1 and "do not use these results" in text
    assert "Warning.** The alignment of 'noise' has failed: maps" in text
    assert len(re.findall(r"\| failed +\| YES ", text)) == 1
    assert text.count("| expected share of right best matches") == 2  # of those that succeeded
    page = (finished / "report.html").read_text().split("<h2>A picture to explore</h2>")[0]
    assert page.count('src="data:image/png;base64,') == page.count("<img") == 3
    assert "://" not in page and "<h2>bare</h2>" in page and page.count("<table>") == 3 * 2 + 1
    assert not list(finished.parent.rglob("*.half"))


def test_words_with_signs_of_markdown_and_html_are_shown_as_they_are(tmp_path):
    word = r"<b>*a*|`b`_[c](d)&lt;\\"
    text = report.results.markdown(("x", "y"), [(report._escaped(word), "z")])
    page = report.page(text, "<t>", tmp_path)
    assert f"<td>{html.escape(word)}</td>\n<td>z</td>" in page and "<title>&lt;t&gt;<" in page
    lines = report.results.markdown(("x", "y"), [(report._escaped("a\tb\r\nc"), "z")])
    assert "<td>a b  c</td>\n<td>z</td>" in report.page(lines, "t", tmp_path)


def test_one_source_that_is_left_needs_no_common_coordinates():
    text = report.common_section(align_files.Space("b", [], np.zeros((0, 16))), ["noise"], {})
    assert "Left out, because their alignment has failed: noise." in text
    assert "Fewer than two sources are left" in text


@pytest.mark.slow
def test_all_spaces_are_mapped_into_common_coordinates(finished):
    x, y, truth = rotated_spaces()
    maps = {
        name: alignment.load(finished / "common" / f"{name}.npz") for name in ("a", "bare", "b")
    }
    for name, aligner in maps.items():
        assert (aligner.source, aligner.target) == (name, "common")
        assert aligner.method == "synchronised" and aligner.profile is not None
    rows = {name: unit(np.asarray(m.apply(y if name == "b" else x))) for name, m in maps.items()}
    for first, second, partners in (("a", "bare", np.arange(240)), ("a", "b", truth)):
        cosines = rows[first] @ rows[second].T
        assert (cosines.argmax(axis=1) == partners).mean() > 0.97
    text = (finished / "report.md").read_text()
    assert "## All spaces in the coordinates of b" in text and "| a, bare " in text
    assert "Left out, because their alignment has failed: noise." in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of_x0", "more", "refusal"),
    [
        (b"", (), None),
        (b"1", (), r"spaces was \['a \w+', .* is now \['a "),
        (b"", ("--rows=100",), "rows was 20000, is now 100"),
    ],
)
def test_a_finished_run_prints_its_report_again_and_no_report_of_another_input(
    finished, files, tmp_path, monkeypatch, capsys, of_x0, more, refusal
):
    content = (files / "a.vec").read_bytes().replace(b"\nx0 ", b"\nx0 " + of_x0)
    (tmp_path / "a.vec").write_bytes(content)
    gc.collect()  # releases the lock of the folder, which an earlier test's error holds
    (finished / "learning").mkdir(exist_ok=True)  # as a run leaves it that is killed at the end
    given = (str(word) for word in of(files, finished, *ALL))
    given = [word.replace(f"{files}/a.vec", f"{tmp_path}/a.vec") for word in given]
    code = run(monkeypatch, *given, *more)
    printed = capsys.readouterr()
    if refusal:
        assert code == 2 and re.search(refusal, printed.err)
    else:
        assert not code and not (finished / "learning").exists()
        assert printed.out.strip() == (finished / "report.md").read_text().strip()


@pytest.mark.slow
def test_a_stopped_run_resumes_to_the_same_results(stopped, finished):
    _, log, tables = stopped
    assert '"part": "align/refine"' in log
    assert {path.name for path in tables} == {"anchors.tsv", "dictionary.tsv"}
    assert tables == {path: path.read_bytes() for path in finished.glob("*/*.tsv")}
    assert {path.name for path in finished.parent.iterdir()} == {"out", "volume"}


PAIRS_OF = {  # file -> content; each states the pairs (0, 1), (2, 0)
    "words.txt": 'x0 "y\nx2\ty0\n',
    "words.tsv": 'x0\t"""y"\nx2\ty0\n',
    "header.txt": 'target source\n"y x0\ny0 x2\n',
    "words.csv": 'source,note,target\nx0,,"""y"\nx2,"a,\nb",y0\n',
    "rows.csv": "source_row,target_row\n0,1\n2,0\n",
    "rows.txt": "0 1\n2\t0\n",
}


@pytest.mark.parametrize("name", PAIRS_OF)
def test_pairs_are_words_or_row_numbers_as_the_file_or_a_flag_says(tmp_path, name):
    (tmp_path / name).write_text(PAIRS_OF[name])
    source = align_files.Space("a", ["x0", "x1", "x2"], np.eye(3, dtype=np.float32))
    target = align_files.Space("b", ["y0", '"y'], np.eye(2, dtype=np.float32))
    pairs = pair_files.read(tmp_path / name)
    known = align_files.with_pairs(source, target, pairs, name == "rows.txt", tmp_path / name)
    assert known.pairs.tolist() == [[0, 1], [2, 0]] and not known.num_unknown


def test_a_table_of_texts_is_read_again_as_pairs_and_as_a_space(tmp_path):
    texts = ["a tab\there", 'a "quote"', '"', " spaces ", "plain", "source"]
    np.savez(tmp_path / "texts.npz", words=np.array(texts), vectors=np.eye(6, dtype=np.float32))
    assert align_files.read_space(tmp_path / "texts.npz", "texts").words == texts
    table = {"source": np.array(texts, object), "target": np.array(texts[::-1], object)}
    align_files.write_table(tmp_path / "anchors.tsv", table | {"confidence": np.linspace(1, 0, 6)})
    pairs = pair_files.read(tmp_path / "anchors.tsv")
    assert pairs == ([*zip(texts, texts[::-1], strict=True)], False)
    columns = pd.read_csv(tmp_path / "anchors.tsv", sep="\t")
    assert columns["source"].tolist() == texts


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["a.vec", "b.npz"], ["a", "b"]),
        (["wiki.fr.vec", "wiki.en.vec"], ["wiki.fr", "wiki.en"]),
        (["glove.6B.50d.txt.gz", "glove.6B.300d.txt"], ["glove.6B.50d", "glove.6B.300d"]),
        (["a.vec", "a.npz"], ["a.vec", "a.npz"]),
        (["old/vectors.npy", "new/vectors.npy"], ["old-vectors", "new-vectors"]),
        (["old/x/v.npy", "new/x/v.npy", "x.npy"], ["old-x-v", "new-x-v", "in-here-x"]),
        (["out/target.npz", "b.npz"], ["out-target", "here-b"]),  # reserved
        (["b.npz", "out/target.npz"], ["b", "target"]),
        (["x/.vec", "y/.npz"], ["x-", "y-"]),
    ],
)
def test_spaces_are_named_by_what_differs_in_their_paths(paths, expected, monkeypatch, tmp_path):
    (tmp_path / "in/here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "in/here")
    *sources, target = map(Path, paths)
    assert name_spaces(sources, target) == expected


def test_new_vectors_of_another_space_are_warned_of(tmp_path, caplog):
    """Of another model and the same width; other rows of the same space are like it."""
    x = normal(0, 3_000, 40) * np.geomspace(1, 0.1, 40, dtype=np.float32)
    aligner = alignment.fit("procrustes", x[:2_000], x[:2_000], names=("old", "target"))
    profile = likeness.profile(aligner.normalise_source(x[:2_000]))
    aligner = dataclasses.replace(aligner, profile=profile)
    for vectors in (x[-900:], x[-50:], x[-1:], x[:900, ::-1]):
        assert not caplog.text
        np.save(tmp_path / "new.npy", vectors)
        assert sum(len(b.words) for b in align_files.map_blocks(tmp_path / "new.npy", aligner))
    assert "new.npy are not like those of 'old'" in caplog.text


@pytest.mark.parametrize("dimension", [1, 7, 4096])
def test_headers_that_are_written_last_fit_in_their_place(tmp_path, dimension):
    words = [f"w{i}" for i in range(11)]
    block = vector_files.Block(words, np.ones((11, dimension), np.float32))
    for name in ("a.npy", "a.vec"):
        assert align_files.write_blocks(tmp_path / name, iter([block] * 20)) == 220
    vectors = np.load(tmp_path / "a.npy")
    assert vectors.shape == (220, dimension) and (vectors == 1).all()
    lines = (tmp_path / "a.vec").read_text().splitlines()
    assert len(lines) == 221 and lines[0].split() == ["220", str(dimension)]


ODD = ["windows 95", "5", "-.5", "a,1", "a;1", "s0,0.376", "a, 1", '"', '"a"', '"a, 1"', " ", " a "]
ODD += ["nan", "1e5", "\ufeff", "\u00a0", "\x85", "\u2028", "\0", "café", "日本", "x" * 999, "2 3"]
LOST_IN_TEXT = ["", "\t", "a\tb", "a\nb", "\r", "a\t0.5"]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(ODD + LOST_IN_TEXT) | st.text(st.characters(codec="utf-8"), max_size=5),
        st.sampled_from([0.25, -3.0, 1e-20, 12345.0]),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.slow
@settings(max_examples=30)
@given(rows=ROWS, dimension=st.integers(1, 3))
@example(rows=[("windows 95", 1.0)], dimension=2)
@example(rows=[("item 1", 1.0), ("item 2", 2.0)], dimension=1)
def test_what_is_written_is_read_back(tmp_path_factory, rows, dimension):
    folder = tmp_path_factory.getbasetemp()
    words, values = zip(*rows, strict=True)
    vectors = np.array(values, np.float32)[:, None].repeat(dimension, axis=1)
    for suffix in align_files.WRITERS:
        path = folder / f"odd{suffix}"
        blocks = align_files.in_blocks(words, vectors)
        text = suffix in (".vec", ".txt")
        if text and any(not word or re.search("[\t\r\n]", word) for word in words):
            with pytest.raises(UserError, match="can't be written to text"):
                align_files.write_blocks(path, blocks)
            continue
        assert align_files.write_blocks(path, blocks) == len(words)
        (read_back,) = vector_files.stream(path, distinct=False)
        expected = [str(row) for row in range(len(words))] if suffix == ".npy" else list(words)
        assert read_back.words == expected
        np.testing.assert_allclose(read_back.vectors, vectors, rtol=1e-5)
        if len({*words, ""}) > len(words):  # so that they identify rows
            assert vector_files.read(path).words == expected


def test_one_long_text_does_not_make_a_file_large(tmp_path):
    words = ["word"] * 1_999 + ["long " * 20_000]
    blocks = align_files.in_blocks(words, np.ones((2_000, 2), np.float32))
    tracemalloc.start()
    align_files.write_blocks(tmp_path / "a.npz", blocks)
    assert tracemalloc.get_traced_memory()[1] < 3e6
    tracemalloc.stop()
    assert (tmp_path / "a.npz").stat().st_size < 200_000
    with np.load(tmp_path / "a.npz") as file:  # the recipe of docs/own_vectors.md
        letters, offsets = file["words_utf8"].tobytes(), file["words_offsets"]
        assert [letters[i:j].decode() for i, j in itertools.pairwise(offsets)] == words


def test_a_known_pair_names_one_row_of_each_space(tmp_path):
    path = tmp_path / "pairs.txt"
    pairs = pair_files.Pairs([("a", "x"), ("c", "z")], None)
    source = align_files.Space("s", ["a", "b", "b"], np.ones((3, 2), np.float32))
    target = source._replace(words=["x", "y", "y"])
    known = align_files.with_pairs(source, target, pairs, False, path)
    assert known.pairs.tolist() == [[0, 0]] and known.num_unknown == 1
    repeated = target._replace(words=["x", "y", "x"])
    with pytest.raises(UserError, match="pair with 'x', the word of several rows"):
        align_files.with_pairs(source, repeated, pairs, False, path)


@pytest.mark.slow
def test_spaces_are_aligned_without_known_pairs():
    """The same 300 of 500 rows are the most frequent ones of both spaces, in unknown order."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 20)) * np.linspace(2, 0.5, 20)
    y = x @ np.linalg.qr(rng.normal(size=(30, 30)))[0][:20] + 0.02 * rng.normal(size=(500, 30))
    order = np.concatenate([rng.permutation(300), 300 + rng.permutation(200)])
    few = search.Steps(search_rows=300, search_steps=20, group_rows=100)
    result = discovery.discover(x, y[order], settings=search.Settings(steps=few))
    assert not result.failed and result.rejected_pairs == [] and result.probability > 0.99
    assert result.initialization == "profiles-geometry-0.5"
    assert len(result.anchors) > 450
    right = np.mean(order[np.asarray(result.dictionary.to_target)] == np.arange(500))
    assert abs(result.expected.value - right) <= result.expected.uncertainty
    np.testing.assert_array_equal(order[result.anchors[:, 1]], result.anchors[:, 0])


@given(st.floats(0.3, 1), st.integers(1, 99), st.integers(100, 200))
def test_more_agreement_and_more_mutual_matches_let_expect_more(gain, mutual, others):
    share = search.expected_share(gain, mutual, 100, others)
    assert 0 < share.value < 1 and share.uncertainty >= 0.01
    assert share.value >= search.expected_share(gain * 0.9, mutual, 100, others).value
    assert share.value <= search.expected_share(gain, mutual + 1, 100, others).value


def test_a_right_translation_of_a_held_out_row_ranks_first_and_wrong_ones_do_not():
    """Each row has a wrong translation, before the right one or after it; three rows no other."""
    x, y, truth = rotated_spaces()
    right = np.stack([np.arange(30), truth[:30]], axis=1)
    wrong = np.stack([np.arange(30), truth[30:60]], axis=1)
    pairs = np.concatenate([wrong[:5], right[3:], wrong])
    ranks, confidence = discovery.held_out(x, y, pairs, folds=2)
    assert ranks.shape == (30,) and (ranks[3:] == 0).mean() > 0.9 and not (ranks[:3] == 0).any()
    assert confidence.shape == (30,) and ((confidence > 0) & (confidence <= 1)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": unit_rows(0, 5, 3)}, "has 5 vectors: give at least 20"),
        ({"pairs": [[0, 99]]}, "Pair 0 is outside"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    given = {"source": unit_rows(0, 30, 3), "target": unit_rows(1, 30, 4)}
    with pytest.raises(UserError, match=message):
        discovery.discover(**given | change)
    with pytest.raises(UserError, match="give at least two"):  # of which one is held out
        discovery.held_out(**given, pairs=[[0, 0]])
