"""The verdict on stores whose answer is known: the true shares are computed by brute force."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isthmus
from common.data.packages import cache_dir
from common.data.readers.vector_files import Form
from common.errors import UserError
from common.spaces import paired_spaces
from isthmus.align import files
from isthmus.store import METRICS, pairs, report
from isthmus.store.estimate import Estimate, Estimates
from isthmus.store.migration import advise

NUM, ASKED = 1_600, 400  # sentences are encoded in blocks of 2,048
NAMES = {10: "recall_10", 50: "within_50", 100: "within_100", 200: "within_200"}


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def items(latent=24, topics=1, count=NUM + ASKED, seed=0):
    """Items of several topics, and a random linear view of them with noise."""
    rng = np.random.default_rng(seed)
    topic = np.arange(count) % topics
    z = rng.normal(size=(count, latent)) * np.linspace(1, 0.3, latent)
    return z + 3 * rng.normal(size=(topics, latent))[topic] * (topics > 1), topic, rng


def view(z, dimension, noise, rng):
    x = z @ rng.normal(size=(z.shape[1], dimension))
    return (x + noise * x.std() * rng.normal(size=x.shape) + 0.3).astype(np.float32)


def first(queries, store, count):
    return np.argsort(-(queries @ store.T), axis=1, kind="stable")[:, :count]


def truth(result, old, new, searched=unit):
    """The shares that are kept of the lists of other items, in NumPy alone."""
    aligner = result.aligner
    normalised = [unit(unit(x) - m[0]) if len(m) else unit(x) for x, m in (
        (old[:NUM], np.asarray(aligner.source_means)), (new[NUM:], np.asarray(aligner.target_means))
    )]  # fmt: skip
    stores = {
        "by_map": (normalised[1], unit(normalised[0] @ np.asarray(aligner.matrix))),
        "by_old": (searched(old[NUM:]), searched(old[:NUM])),
    }
    true = first(unit(new[NUM:]), unit(new[:NUM]), 10)
    kept = {}
    for by, (queries, store) in stores.items():
        lists = first(queries, store, 200)
        kept[by] = {
            name: np.mean([np.isin(t, x[:n]).mean() for t, x in zip(true, lists, strict=True)])
            for n, name in NAMES.items()
        }
    return kept


def assert_right(result, kept, slack=0.02):
    for by, shares in kept.items():
        for name, share in shares.items():
            value, uncertainty = getattr(result.estimates, by)[name]
            assert abs(value - share) <= uncertainty + slack, (by, name, share, value, uncertainty)


def migrate(old, new, rows, partners=None, **options):
    """By pairs of `rows` of the store, whose new vectors are those of `partners`."""
    new = new[rows if partners is None else partners]
    return isthmus.migrate(old[:NUM], new, np.stack([rows, np.arange(len(rows))], 1), **options)


def int8(x):
    return np.rint(x / np.abs(x).max(axis=0) * 127).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("count", [100, 600])
def test_a_model_that_did_not_change_is_kept(count):
    z, _, rng = items()
    old = view(z, 48, 0.5, rng)
    rotation = np.linalg.qr(rng.normal(size=(48, 48)))[0].astype(np.float32)
    for new in (old, old @ rotation):
        result = migrate(old, new, rng.permutation(NUM)[:count])
        assert result.advice.strategy == "old model" and not result.doubts
        assert all(share.value > 0.995 for share in result.estimates.by_old.values())
        assert_right(result, truth(result, old, new))
    assert len(repr(result)) < 200


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.2, 0.5, 1.0, 2.0])
def test_noise_is_told_as_it_is(noise):
    z, _, rng = items()
    old, new = (view(z, d, noise, rng) for d in (48, 32))
    result = migrate(old, new, rng.permutation(NUM)[:600])
    assert not result.doubts and len(result.suspicious) <= 0.01 * 600
    assert_right(result, truth(result, old, new))


@pytest.mark.slow
def test_a_store_in_int8_is_searched_as_it_is_or_mapped():
    z, _, rng = items()
    new = view(z, 48, 0.5, rng)
    result = migrate(int8(new), new, rng.permutation(NUM)[:600], old_model_runs=False)
    assert result.advice.strategy == "mapped store"
    assert_right(result, truth(result, int8(new), new))


@pytest.mark.slow
def test_pairs_that_are_versions_of_few_texts_are_thinned():
    z, _, rng = items()
    texts = 120
    z[: 5 * texts] = np.repeat(z[:texts], 5, axis=0) + 0.01 * rng.normal(size=(5 * texts, 24))
    old, new = (view(z, d, 0.0, rng) for d in (48, 32))
    noise = [x.std() * rng.normal(size=x.shape).astype(np.float32) for x in (old, new)]
    for x, n in zip((old, new), noise, strict=True):
        n[: 5 * texts] = np.repeat(n[:texts], 5, axis=0)
        x += n
    result = migrate(old, new, np.arange(5 * texts))
    assert result.duplicates == 4 * texts and len(result.pairs) == texts
    assert result.advice.strategy != "old model"
    assert_right(result, truth(result, old, new), slack=0.1)


@pytest.mark.slow
def test_pairs_of_one_topic_are_told():
    z, topic, rng = items(topics=2)
    old, new = (view(z, d, 1.0, rng) for d in (48, 32))
    result = migrate(old, new, rng.permutation(np.flatnonzero(topic[:NUM] == 0))[:600])
    assert not result.certain
    assert report.verdict(result).startswith("Not certain") and "topic" in report.verdict(result)
    assert not migrate(old, new, rng.permutation(NUM)[:600]).doubts


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_wrong_partners_are_found_and_left_out(share):
    z, _, rng = items()
    old, new = (view(z, d, 0.3, rng) for d in (48, 32))
    rows = rng.permutation(NUM)[:600]
    partners = rows.copy()
    wrong = int(share * len(rows))
    partners[:wrong] = np.roll(rows[:wrong], 1)
    result = migrate(old, new, rows, partners)
    found = np.isin(result.suspicious[:, 1], np.arange(wrong))
    assert found.mean() > 0.9 and found.sum() > 0.9 * wrong
    assert_right(result, truth(result, old, new))
    before = result.with_suspicious.by_map["recall_10"].value
    assert before < result.estimates.by_map["recall_10"].value


@pytest.mark.parametrize(("count", "share"), [(600, 0.7), (600, 1.0), (150, 0.15)])
def test_wrong_partners_that_are_not_found_are_told(count, share):
    """As where ids of one file are row numbers of another, or the map is poor."""
    z, _, rng = items()
    old, new = (view(z, d, 1.0, rng) for d in (48, 32))
    rows = rng.permutation(NUM)[:count]
    wrong = int(share * len(rows))
    result = migrate(old, new, rows, np.r_[np.roll(rows[:wrong], 1), rows[wrong:]])
    (told,) = re.findall(r"about (\d+)% of the pairs are not of one item", report.verdict(result))
    assert abs(int(told) - 100 * share) < 10 and not result.certain


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hamming", "dot"])
def test_the_metric_of_the_store_is_told_or_noticed(kind):
    z, _, rng = items()
    old, new = (view(z, d, 0.5, rng) for d in (48, 32))
    if kind == "hamming":
        old = np.packbits(old > 0.3, axis=1).astype(np.float32)
    else:
        old = (old * np.exp(0.4 * rng.normal(size=(len(old), 1)))).astype(np.float32)
    rows = rng.permutation(NUM)[:600]
    result = migrate(old, new, rows, metric=kind)
    if kind == "hamming":
        bits = np.unpackbits(old.astype(np.uint8), axis=1) * 2.0 - 1
        assert_right(result, truth(result, bits, new))
        assert "unpack the old vectors" in report.reasons(result).lower()
    else:
        assert_right(result, truth(result, old, new, np.asarray))
    noticed = migrate(old, new, rows)
    assert not noticed.certain and f"--metric={kind}" in report.verdict(noticed)


@pytest.fixture(scope="module")
def sentences():
    """Unit rows of the same sentences by three encoders, of which USE took no part in the rule."""
    names = {name: f"{name}_sentences" for name in ("minilm", "use", "wordllama")}
    return {
        name: unit(paired_spaces.load_space(space, cache_dir(), max_rows=NUM + ASKED).vectors)
        for name, space in names.items()
    }


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(
    ("by_old", "by_new", "strategy"),
    [
        ("minilm", "minilm", "old model"),
        ("minilm in int8", "minilm", "mapped store"),
        ("wordllama", "use", "re-embedded"),
    ],
)
def test_real_encoders(by_old, by_new, strategy, sentences):
    new, coarse = sentences[by_new], by_old.endswith("int8")
    old = int8(sentences["minilm"]) if coarse else sentences[by_old]
    rows = np.random.default_rng(0).permutation(NUM)[:600]
    result = migrate(old, new, rows, old_model_runs=not coarse)
    kept = truth(result, old, new)
    assert_right(result, kept)
    assert not result.doubts
    exact = [{name: Estimate(x, 0.0) for name, x in kept[by].items()} for by in kept]
    assert list(kept) == list(Estimates._fields)
    by_truth = advise(Estimates(*exact), old_model_runs=not coarse).strategy
    assert result.advice.strategy == by_truth == strategy


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(("count", "precision"), [(300, 0.8), (600, 0.9)])
def test_wrong_partners_of_real_encoders(count, precision, sentences):
    """Most are found, and few right ones; the others leave the estimate where it is."""
    old, new = sentences["minilm"], sentences["use"]
    rows = np.random.default_rng(0).permutation(NUM)[:count]
    wrong = count // 10
    result = migrate(old, new, rows, np.r_[np.roll(rows[:wrong], 1), rows[wrong:]])
    found = result.suspicious[:, 1] < wrong
    assert found.mean() > precision and found.sum() > 0.6 * wrong and not result.doubts
    assert_right(result, truth(result, old, new))


def table(path, ids, vectors):
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    pq.write_table(pa.table({"id": ids, "v": lists}), path)


X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
IDS = list(range(60))


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (IDS, IDS[:40], 40),  # from 0
        (IDS, [float(i) for i in IDS[:40]], 40),  # a table of floats
        ([f"{i}" for i in IDS], IDS[:40], 40),
        ([None, *map(str, IDS[1:])], [None, *map(str, IDS[1:40])], 39),  # null is no id
        (IDS, None, 0),  # a file of row numbers
        (IDS, [f"d{i}" for i in IDS[:40]], "None of the 40 ids of --new is in --old.*'0'.*'d0'"),
        (IDS, [i + 50 for i in IDS[:40]], "10 of the 40 ids"),
    ],
)
def test_ids_and_row_numbers_are_two_things(old, new, found, tmp_path):
    form = Form(id_column="id")
    table(tmp_path / "old.parquet", pa.array(old), X)
    if new is None:
        np.save(tmp_path / "new.npy", X[:40])
    else:
        table(tmp_path / "new.parquet", pa.array(new), X[:40])
    spaces = [
        files.read_space(next(tmp_path.glob(f"{name}.*")), name, form=form)
        for name in ("old", "new")
    ]
    if isinstance(found, str):
        with pytest.raises(UserError, match=found):
            files.equal_ids(*spaces, required=True)
        assert files.equal_ids(*spaces, required=False) is None
    else:
        pairs = files.equal_ids(*spaces, required=True)
        assert len(pairs.entries if pairs else []) == found


@pytest.mark.slow
def test_exchanged_files_are_told():
    z, _, rng = items()
    old, new = (view(z, d, 0.3, rng)[:NUM] for d in (48, 32))
    pairs = np.stack([np.arange(300), rng.permutation(NUM)[:300]], axis=1)
    result = isthmus.migrate(old[pairs[:, 1]], new, pairs)
    assert not result.certain and "exchanged" in report.verdict(result)


def test_the_flag_has_all_metrics_of_a_store():
    """They stand twice, so that the help of the command imports no JAX."""
    assert tuple(pairs.METRICS) == METRICS
