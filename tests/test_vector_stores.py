"""The recipes of docs/vector_stores.md, each on files that `isthmus apply` writes."""

import contextlib
import json
import re
import types
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
RECIPES = dict(re.findall(r"^## (.*?)\n.*?```python\n(.*?)```", PAGE.read_text(), re.M | re.S))
NUM_ROWS, NUM_QUERIES = 60, 5


@pytest.fixture
def names(tmp_path, monkeypatch):
    """Old and new vectors; their files, as the page has them, are in the working folder."""
    monkeypatch.chdir(tmp_path)
    old, new = normal(0, NUM_ROWS, 6) + 0.5, normal(1, NUM_QUERIES, 4)
    aligner = alignment.fit("ridge", old, old @ normal(2, 6, 4), penalty=1.0)
    aligner.save("map.npz")
    ids = np.arange(NUM_ROWS) + 1000
    table = {"id": ids, "embedding": pa.array(old.tolist()), "text": [f"text {i}" for i in ids]}
    pa.parquet.write_table(pa.table(table), "old.parquet")
    np.save("queries.npy", new)
    for path, side, out in (
        ("old.parquet", "source", "mapped.parquet"),
        ("queries.npy", "target", "asked.npy"),
        ("queries.npy", "back", "back.npy"),
    ):
        given = path, "--map=map.npz", f"--side={side}", f"--out={out}"
        assert not commands.run(monkeypatch, "isthmus.apply", *given)
    table = pa.parquet.read_table("mapped.parquet")
    mapped = np.array(table["embedding"].to_pylist(), np.float32)
    return {"np": np, "old": old, "new": new, "written": mapped}


def test_a_map_is_a_few_lines_of_numpy(names):
    exec(RECIPES["The file of a map"], names)
    assert len(RECIPES["The file of a map"].splitlines()) == 6 and int(names["m"]["version"]) == 1
    written = {"mapped": names["written"], "asked": np.load("asked.npy")}
    for name, expected in (written | {"back": np.load("back.npy")}).items():
        np.testing.assert_allclose(names[name], expected, atol=1e-5)
    described = PAGE.read_text().partition("## FAISS")[0]
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


@pytest.mark.parametrize(
    ("heading", "package"),
    [("FAISS", "faiss"), ("LanceDB", "lancedb"), ("Qdrant", "qdrant_client")],
)
def test_stores_find_the_nearest_ids(names, heading, package):
    of_package(package)
    exec(RECIPES[heading], names)
    nearest = np.argsort(-np.load("asked.npy") @ names["written"].T, axis=1)[:, :10]
    np.testing.assert_array_equal(names["ids"], 1000 + nearest)


def test_postgres_gets_ids_and_vectors_as_text(names):
    statements, sent = [], []
    copy = types.SimpleNamespace(write_row=sent.append)
    cursor = types.SimpleNamespace(execute=statements.append)
    cursor.copy = lambda sql: (statements.append(sql), contextlib.nullcontext(copy))[1]
    connection = types.SimpleNamespace(cursor=lambda: contextlib.nullcontext(cursor))
    connection.commit = lambda: statements.append("COMMIT")  # without it, psycopg discards all
    names["connection"] = connection
    exec(RECIPES["PostgreSQL with pgvector"], names)
    extension, table, copied, _, commit = statements
    assert extension == "CREATE EXTENSION IF NOT EXISTS vector" and "vector(4)" in table
    assert copied.startswith("COPY mapped (id, embedding)") and commit == "COMMIT"
    assert [row[0] for row in sent] == list(range(1000, 1000 + NUM_ROWS))
    vectors = [json.loads(row[1]) for row in sent]  # '[1.0, 2.0]', as pgvector reads it
    np.testing.assert_allclose(vectors, names["written"], rtol=1e-6)


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
