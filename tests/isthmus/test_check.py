"""isthmus check: a store that is right, and each way in which it goes wrong."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isthmus
from common.data.packages import cache_dir
from common.data.sets import messages
from common.errors import UserError
from common.spaces import paired_spaces
from isthmus.store.check import shift
from tests import commands
from tests.samples import normal

NUM, CANARIES = 2_048, np.repeat(np.arange(200)[:, None], 2, axis=1)
RNG = np.random.default_rng(0)


def rotated(x):
    return x @ np.linalg.qr(np.random.default_rng(1).normal(size=(x.shape[1],) * 2))[0]


def int8(x):
    return np.rint(x / np.abs(x).max(axis=0) * 127)


def of_width(x, size):
    return np.pad(x, ((0, 0), (0, max(0, size - x.shape[1]))))[:, :size]


@pytest.fixture(scope="module")
def sentences():
    """The same sentences by two encoders, of 384 and 512 numbers."""
    names = {name: f"{name}_sentences" for name in ("minilm", "use")}
    return {
        name: np.asarray(paired_spaces.load_space(space, cache_dir(), max_rows=NUM).vectors)
        for name, space in names.items()
    }


@pytest.mark.network
@pytest.mark.slow
def test_the_model_in_use_is_told_by_its_canaries(sentences):
    stored, other = sentences.values()
    for again, model in (
        (stored, "same"),
        (2.5 * stored.astype(np.float16), "rounded"),
        (int8(stored), "rounded"),
        (rotated(stored), "rotated"),
        (rotated(of_width(stored, 512)), "rotated"),
        (of_width(other, 384), "other"),
        (other, "other"),
    ):
        found = isthmus.check(stored, again[:200], CANARIES)
        assert found.measured["model"] == model, found
        assert bool(found.wrong) == (model in ("rotated", "other")), found
    for few in (20, 50):
        for again, model in ((int8(stored), "rounded"), (rotated(stored), "rotated")):
            found = isthmus.check(stored, again[:few], CANARIES[:few])
            assert found.measured["model"] == model, found
    edited = stored[:200].copy()
    edited[[3, 7]] = stored[[300, 301]]
    found = isthmus.check(stored, edited, CANARIES)
    assert found.measured["changed"] == ["3", "7"] and "have changed (3, 7)" in str(found)


@pytest.mark.parametrize("apart", [0.0, 0.01])
def test_canaries_of_one_text_or_of_like_ones_are_told(apart):
    rng, first = np.random.default_rng(0), normal(0, 1, 64)
    stored = np.repeat(first, 30, axis=0) + apart * rng.normal(size=(30, 64))
    for again, models in (
        (stored, {"same"}),
        (stored + 1e-4 * rng.normal(size=stored.shape), {"rounded"}),
        (rotated(stored), {"rotated", "other"}),  # nothing tells a rotation of one vector
    ):
        found = isthmus.check(stored, again, CANARIES[:30])
        assert found.measured["model"] in models and np.isfinite(found.measured["correlation"])


@pytest.mark.network
@pytest.mark.slow
def test_texts_that_the_model_takes_otherwise_are_told_where_all_cosines_are_high():
    """E5's rows have cosines of .8 and more with each other, and .95 and more with these."""
    texts = messages.load("es", cache_dir()).texts[:600:50]
    changes = (str, "query: {}".format, "Texto: {}".format, str.lower)
    made = isthmus.encode([change(text) for change in changes for text in texts], "e5")
    stored, *others = np.split(np.asarray(made), len(changes))
    pairs = CANARIES[: len(texts)]
    assert isthmus.check(stored, int8(stored), pairs).measured["model"] == "rounded"
    for again in others:
        assert isthmus.check(stored, again, pairs).measured["model"] == "other"
        assert np.median(np.sum(stored * again, axis=1)) > 0.94


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.3, 0.8])
@pytest.mark.parametrize(("own", "other"), [("minilm", "use"), ("use", "minilm")])
def test_rows_of_another_model_are_found_and_no_others(own, other, share, sentences):
    made = np.arange(NUM) >= 200  # by either
    wrong = made & (RNG.random(NUM) < share)
    right = sentences[own]
    stored = np.where(wrong[:, None], rotated(of_width(sentences[other], right.shape[1])), right)
    found = isthmus.check(stored, right[:200], CANARIES)
    rows = np.isin(np.arange(NUM), np.array(found.measured["of_another_model"], int))
    assert rows[wrong].mean() > 0.99 and rows[~wrong].mean() < 0.002
    assert found.wrong and f"of {NUM:,} rows are like another model's" in str(found)


@pytest.mark.network
@pytest.mark.slow
def test_a_map_that_keeps_less_is_told(sentences):
    old, new = sentences["minilm"], sentences["use"]
    rows = np.random.default_rng(0).permutation(NUM)
    fitted, *others = (np.stack([x, x], axis=1) for x in np.split(rows, [400, 1_000, 1_600])[:3])
    aligner = isthmus.fit("ridge", old, new, pairs=fitted, penalty=1.0)
    first = isthmus.check(old, aligner=aligner, new=new, new_pairs=others[0])
    kept = first.measured["kept"]
    options = {"aligner": aligner, "kept": kept, "new_pairs": others[1]}
    later = isthmus.check(old, new=new, **options)
    assert not later.wrong and abs(later.measured["kept"][0] - kept[0]) < 0.05
    found = isthmus.check(old, new=rotated(new), **options)
    assert found.measured["kept"][0] < 0.05 and "the map keeps 0.0" in str(found)


def test_newest_rows_of_another_kind_have_drifted():
    x = normal(0, 1_000, 16)
    assert not isthmus.check(x).wrong
    x[-100:] += 1.0
    found = isthmus.check(x)
    assert found.wrong and found.measured["drift"] > 0.3 and "newest 100 rows" in str(found)
    distance = np.sum((x[:900].mean(axis=0) - x[900:].mean(axis=0)) ** 2)
    expected = distance / x[:900].var(axis=0).sum() - 1 / 900 - 1 / 100
    assert shift(x[:900], x[900:]) == pytest.approx(expected, abs=1e-4)


def save(path, ids, vectors):
    pq.write_table(pa.table({"id": ids, "v": pa.array(vectors.tolist())}), path)


def test_the_command_prints_one_line_and_leaves_with_a_code(tmp_path, monkeypatch, capsys):
    x, ids = normal(0, 300, 16) * np.geomspace(1, 0.1, 16), [f"doc-{i}" for i in range(300)]
    some = np.random.default_rng(1).permutation(300)[:120]
    save(tmp_path / "stored.parquet", ids, x)
    save(tmp_path / "again.parquet", [ids[i] for i in some], x[some])
    save(tmp_path / "other.parquet", [ids[i] for i in some], normal(5, 120, 16))
    save(tmp_path / "strange.parquet", [f"x{i}" for i in some], x[some])
    np.save(tmp_path / "again.npy", x[:120])

    def run(again, *more):
        given = f"--stored={tmp_path}/stored.parquet", f"--again={tmp_path}/{again}", *more
        code = commands.run(monkeypatch, "isthmus.checks", *given)
        return code, capsys.readouterr()

    code, printed = run("again.parquet", "--id_column=id", f"--json={tmp_path}/found.json")
    assert not code and printed.out.count("\n") == 1
    assert printed.out.startswith("OK: the model in use is the same by 120 canaries; ")
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["ok"] and found["measured"]["rows"] == 300
    code, printed = run("other.parquet", "--id_column=id")
    assert code == 1 and printed.out.startswith("WRONG: the model in use is another one, or takes")
    assert ", by 120" in printed.out
    for again, flag, message in (
        ("strange.parquet", "--id_column=id", "None of the 120 ids of --again is in --stored"),
        ("again.npy", "--id_column=id", "--stored or --again has no ids"),
    ):
        code, printed = run(again, flag)
        assert code == 2 and message in printed.err
    assert not run("again.npy", "--pair_rows")[0]


def test_rows_that_fill_all_directions_are_not_told_from_others():
    x = normal(0, 400, 16)
    found = isthmus.check(x, x[:200], CANARIES)
    assert not found.wrong and "of_another_model" not in found.measured


def test_what_does_not_fit_is_refused():
    x = normal(0, 60, 4)
    for again, pairs, message in (
        (x, None, "There are no pairs of stored rows and 'again'"),
        (x, [[0, 99]], "Pair 0 is outside"),
        (x * np.nan, [[0, 0]], "of 'again' are not finite"),
    ):
        with pytest.raises(UserError, match=message):
            isthmus.check(x, again, pairs)
    with pytest.raises(UserError, match="Of 60 stored rows alone nothing can be said"):
        isthmus.check(x)
