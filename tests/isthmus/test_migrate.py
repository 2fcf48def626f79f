"""isthmus migrate: from the first command to a searched store, and what its report says."""

import functools
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import isthmus
from common import alignment
from common.errors import UserError
from common.linear import unit
from common.retrieval import top_k
from isthmus.store import migration, remapping, report
from isthmus.store.estimate import Estimate, Estimates
from isthmus.store.migration import Queries, advise
from tests import commands

NUM_OLD, NUM_PAIRS, NUM_QUERIES = 1_000, 300, 40
PARTS = "old", "new", "old_queries", "new_queries"


def models(noise, count=NUM_OLD + NUM_QUERIES, seed=0):
    """Vectors of the same items by two models, of 24 and 32 numbers, which agree up to noise."""
    rng = np.random.default_rng(seed)
    items = rng.normal(size=(count, 16)) * np.linspace(2, 0.5, 16)
    spaces = [items @ rng.normal(size=(16, d)) for d in (24, 32)]
    return [
        (x + noise * x.std() * rng.normal(size=x.shape) + 0.3).astype(np.float32) for x in spaces
    ]


def save(path, ids, vectors):
    columns = {"key": ids, "text": ["t"] * len(ids), "v": pa.array(vectors.tolist())}
    pa.parquet.write_table(pa.table(columns), path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The store by the old model, some of its items by the new one, and queries by both."""
    folder = tmp_path_factory.mktemp("files")
    old, new = models(0.5)
    ids = [f"d{i}" for i in range(NUM_OLD)]
    paired = np.random.default_rng(1).permutation(NUM_OLD)[:NUM_PAIRS]
    queries = [f"q{i}" for i in range(NUM_QUERIES)]
    keys_of = ids, [ids[i] for i in paired], queries, queries
    vectors_of = old[:NUM_OLD], new[paired], old[NUM_OLD:], new[NUM_OLD:]
    for name, keys, vectors in zip(PARTS, keys_of, vectors_of, strict=True):
        save(folder / f"{name}.parquet", keys, vectors)
    nearest = np.asarray(top_k(unit(new[NUM_OLD:]), unit(new[paired]), 2).index)
    relevant = [f"q{q} d{paired[row]}\n" for q, rows in enumerate(nearest) for row in rows]
    (folder / "relevant.txt").write_text("".join(relevant))
    return folder


@pytest.mark.slow
def test_the_journey_from_the_first_command_to_a_searched_store(
    files, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "out"
    given = [f"--{name}={files}/{name}.parquet" for name in PARTS]
    given += [f"--relevant={files}/relevant.txt", "--id_column=key", f"--out={out}"]
    assert not commands.run(monkeypatch, "isthmus.store", *given)
    printed = capsys.readouterr().out
    first, _, reasons = printed.splitlines()[:3]
    page = (out / "report.html").read_text()
    assert f"<title>{first}</title>" in page and page.index("<h1>") < page.index(first, 200)
    assert (out / "report.md").read_text().startswith(f"# {first}\n\n{reasons}\n")
    results = json.loads((out / "results.json").read_text())
    assert results["num_pairs"] == NUM_PAIRS
    assert "Judged by the given queries among 300 documents, the old model has nDCG@10" in printed
    by_name = {(row["strategy"], row["candidates"]): row["ndcg_10"] for row in results["judged"]}
    assert by_name["re-embedded", None] > 0.9  # relevant are those that the new model finds
    assert by_name["mapped candidates", 200] > by_name["mapped store", None]

    # The commands that the report names for a mapped store.
    given = f"--map={out}/map.npz", "--id_column=key"
    mapped, asked = tmp_path / "mapped.parquet", tmp_path / "asked.npy"
    apply = "isthmus.apply"
    assert not commands.run(monkeypatch, apply, files / "old.parquet", *given, f"--out={mapped}")
    queries = files / "new_queries.parquet"
    given = *given, "--side=target", f"--out={asked}"
    assert not commands.run(monkeypatch, apply, queries, *given)
    table = pa.parquet.read_table(mapped)
    assert table["key"].to_pylist() == [f"d{i}" for i in range(NUM_OLD)]
    mapped_store = np.array(table["v"].to_pylist(), np.float32)
    new = models(0.5)[1]
    true = np.asarray(top_k(unit(new[NUM_OLD:]), unit(new[:NUM_OLD]), 10).index)
    kept = remapping.kept(np.load(asked), mapped_store, true)
    for name, (value, uncertainty) in results["kept"]["by_map"].items():
        assert abs(kept[name] - value) < uncertainty + 0.08, name


@pytest.mark.parametrize("ids", [(), ("--id_column=key",), ("--id_column=key", "--new={}")])
def test_one_table_has_the_vectors_of_both_models(tmp_path, monkeypatch, capsys, ids):
    """The texts, which are no ids, are equal; of a null vector nothing is known."""
    old, new = models(0.5, 200)
    done = np.arange(20, 170)
    lists = [row.tolist() if i in done else None for i, row in enumerate(new)]
    both = {"v": pa.array(old.tolist()), "w": pa.array(lists, pa.list_(pa.float32(), 32))}
    path, seen = tmp_path / "store.parquet", []
    pa.parquet.write_table(pa.table({"key": range(200), "text": ["t"] * 200} | both), path)

    def migrate(*arguments, **options):
        seen.extend(arguments)
        raise UserError("It is seen.")

    monkeypatch.setattr(migration, "migrate", migrate)
    asked = f"--old={path}", "--old_column=v", "--new_column=w", f"--out={tmp_path / 'out'}"
    run = functools.partial(commands.run, monkeypatch, "isthmus.store")
    assert run(*asked, *(flag.format(path) for flag in ids))
    assert "It is seen." in capsys.readouterr().err
    for found, expected in zip(seen, (old, new[done]), strict=False):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(seen[2], np.stack([done, np.arange(150)], axis=1))
    assert run(asked[0], f"--new={path}", "--id_column=key", f"--out={tmp_path / 'out'}")
    assert "migrate --old_column and --new_column" in capsys.readouterr().err


@pytest.mark.slow
def test_few_pairs_are_matched_first(tmp_path):
    old, new = models(0.02, 240)
    new = new[np.random.default_rng(2).permutation(240)]
    order = np.random.default_rng(2).permutation(240)
    pairs = np.stack([order[:30], np.arange(30)], axis=1)
    result = isthmus.migrate(old, new, pairs)
    assert result.search is not None and not result.failed
    assert np.mean(order[result.pairs[:, 1]] == result.pairs[:, 0]) > 0.95
    assert "matches (probability" in report.text(result, 1, tmp_path / "old.npy", tmp_path)


@pytest.mark.slow
def test_a_new_model_that_is_no_better_is_not_worth_it():
    old, new = models(0.5, NUM_OLD)
    pairs = np.stack([np.arange(NUM_PAIRS)] * 2, axis=1)
    relevant = np.stack([np.arange(20), np.arange(20)], axis=1)
    other = np.random.default_rng(3).normal(size=(20, 32)).astype(np.float32)
    result = isthmus.migrate(old, new, pairs, queries=Queries(old[:20], other, relevant))
    assert result.advice.strategy == "old model"
    assert report.verdict(result) == "Stay with the old model"


SURE = {"recall_10": 0.95, "within_50": 0.96, "within_100": 0.97, "within_200": 0.98}
LOW = {"recall_10": 0.2, "within_50": 0.3, "within_100": 0.4, "within_200": 0.5}
CANDIDATES = {"recall_10": 0.4, "within_50": 0.8, "within_100": 0.96, "within_200": 0.98}


@pytest.mark.parametrize(
    ("by_old", "by_map", "runs", "verdict", "reason", "step"),
    [
        (SURE, LOW, True, "Stay with the old model", "old model hold .950", "nothing to do"),
        (LOW, SURE, True, "Map the store, and", "mapped store .950", "--side=target"),
        (CANDIDATES, LOW, True, "Let the old model find 50", "first 50 of the old", "No map is"),
        (CANDIDATES, CANDIDATES, False, "Map the store, let it give 100", "100 of the m", "--map="),
        (SURE, LOW, False, "Embed everything again", "200 of the mapped store hold .5", "texts of"),
        (LOW, LOW, True, "Embed everything again", "200 of the mapped store hold .5", "texts of"),
    ],
)
def test_the_verdict_says_what_to_do_why_and_how(
    tmp_path, by_old, by_map, runs, verdict, reason, step
):
    estimates = Estimates(
        *(
            {name: Estimate(share, 0.01) for name, share in kept.items()}
            for kept in (by_map, by_old)
        )
    )
    x = models(0.1, 40)
    aligner = alignment.fit("procrustes", *x)
    result = migration.Migration(
        advice=advise(estimates, runs),
        aligner=aligner,
        choice=remapping.choose(*x),
        estimates=estimates,
        pairs=np.zeros((40, 2), int),
        search=None,
        judged=None,
        sizes=(40, 40),
    )
    text = report.text(result, 1.0, tmp_path / "old.npy", tmp_path)
    assert text.startswith(f"# {verdict}") and reason in text
    assert step in text.partition("## How to do it")[2].partition("## The map")[0]
    assert "uncertain" not in text
    failed = result._replace(search=0.49)
    text = report.text(failed, 1.0, tmp_path / "old.npy", tmp_path)
    assert "search for pairs has failed" in text and not failed.certain


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "first_pair", "relevant", "message"),
    [  # the message has the row of the file, also of a vector that no pair needs
        ("old", 0, None, "The rows 150 of 'old' are not finite"),
        ("new", 0, None, "The rows 150 of 'new' are not finite"),
        (None, 200, None, "Pair 0 is outside"),
        (None, 0, 150, r"No relevant document .* is among the paired"),
    ],
)
def test_what_does_not_fit_is_refused(broken, first_pair, relevant, message):
    vectors = dict(zip(("old", "new"), models(0.5, 200), strict=True))
    if broken:
        vectors[broken][150] = np.nan
    queries = relevant and Queries(*(x[:5] for x in vectors.values()), np.array([[0, relevant]]))
    pairs = np.stack([np.arange(100)] * 2, axis=1) + first_pair
    with pytest.raises(UserError, match=message):
        isthmus.migrate(**vectors, pairs=pairs, queries=queries)
