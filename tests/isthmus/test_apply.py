"""The command isthmus apply: what it writes, and of which files."""

import io
import json
import re
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from common import alignment
from common.data.readers import vector_files
from common.linear import unit
from common.retrieval import top_k
from isthmus.align import files as align_files
from tests import commands
from tests.samples import normal


def run(monkeypatch, *arguments):
    return commands.run(monkeypatch, "isthmus.apply", *arguments)


@pytest.fixture(scope="module")
def saved_map(tmp_path_factory):
    """A map of three numbers into two."""
    path = tmp_path_factory.mktemp("map") / "map.npz"
    names = ("old", "new")
    alignment.fit("least_squares", normal(0, 9, 3), normal(1, 9, 2), names=names).save(path)
    return path


@pytest.mark.parametrize("suffix", ["npz", "vec", "npy", "parquet"])
def test_a_saved_map_is_applied_to_new_vectors(saved_map, tmp_path, monkeypatch, capsys, suffix):
    monkeypatch.setattr(vector_files, "BLOCK_ROWS", 20)
    x, words = normal(0, 50, 3), [f"new{i}" for i in range(50)]
    lines = [f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, x, strict=True)]
    (tmp_path / "new.vec").write_text("".join(lines))
    given = tmp_path / "new.vec", f"--map={saved_map}"
    assert not run(monkeypatch, *given, f"--out={tmp_path / 'mapped'}.{suffix}")
    assert "50 vectors of 'old' mapped onto 'new'" in capsys.readouterr().out
    written = vector_files.read(tmp_path / f"mapped.{suffix}")
    assert written.words == (words if suffix != "npy" else [str(i) for i in range(50)])
    expected = unit(np.asarray(alignment.load(saved_map).apply(x)))
    np.testing.assert_allclose(written.vectors, expected, atol=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"mapped.{suffix}", "new.vec"]


@pytest.mark.parametrize("suffix", ["npz", "vec", "npy", "parquet"])
@pytest.mark.parametrize(
    ("word", "scale", "message"),
    [
        ("new\t3", 1, "tab or line end: choose an --out that ends with .parquet or .npz"),
        ("else", 0, "vector of 'else' .* only zeros"),
        ("else", 1e30, "new.npz, with rows counted from its row 40: The rows 5 of 'old' cannot"),
    ],
)
def test_nothing_is_written_if_a_later_block_is_wrong(
    saved_map, tmp_path, monkeypatch, capsys, suffix, word, scale, message
):
    monkeypatch.setattr(vector_files, "BLOCK_ROWS", 20)
    x = normal(0, 50, 3)
    x[45] *= scale
    words = np.array([f"new {i}" for i in range(45)] + [word] + [f"new {i}" for i in range(46, 50)])
    np.savez(tmp_path / "new.npz", words=words, vectors=x)
    given = tmp_path / "new.npz", f"--map={saved_map}", f"--out={tmp_path / 'mapped'}.{suffix}"
    refused = suffix == "vec" or scale != 1  # a tab is refused by text alone
    assert run(monkeypatch, *given) == (2 if refused else None)
    if refused:
        assert re.search(message, capsys.readouterr().err)
        assert [path.name for path in tmp_path.iterdir()] == ["new.npz"]


def test_many_rows_are_mapped_in_constant_memory(tmp_path, monkeypatch):
    x = normal(0, 100_000, 12)  # 5 MB
    np.save(tmp_path / "new.npy", x)
    monkeypatch.setattr(vector_files, "BLOCK_ROWS", 2000)
    aligner = alignment.fit("procrustes", x[:100], x[:100])
    tracemalloc.start()
    try:
        blocks = align_files.map_blocks(tmp_path / "new.npy", aligner)
        assert align_files.write_blocks(tmp_path / "out.npy", blocks) == 100_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3e6
    written = np.load(tmp_path / "out.npy", mmap_mode="r")
    expected = unit(np.asarray(aligner.apply(x[[0, 5000, -1]])))
    np.testing.assert_allclose(written[[0, 5000, -1]], expected, atol=1e-5)


def stored(kind):
    """Two vectors in a column of a type of Arrow."""
    if isinstance(kind, pa.FixedShapeTensorType):
        return pa.ExtensionArray.from_storage(kind, stored(kind.storage_type))
    return pa.array([[1, 2, 3], [4, 5, -6]], kind)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("new.parquet", pa.list_(pa.int8())),
        ("new.parquet", pa.list_(pa.float64())),
        ("new.parquet", pa.list_(pa.float16(), 3)),
        ("new.parquet", pa.large_list(pa.float32())),
        ("new.parquet", pa.fixed_shape_tensor(pa.float32(), [3])),
        ("new.arrow", pa.list_(pa.float32())),
        ("saved", pa.fixed_shape_tensor(pa.float32(), [3])),
    ],
    ids=str,
)
def test_apply_keeps_all_other_columns_of_a_table(tmp_path, saved_map, monkeypatch, name, kind):
    table = pa.table(
        {
            "id": pa.array([7, 8], pa.uint16()),
            "embedding": stored(kind),
            "text": ["a\nlong\ttext", "a\nlong\ttext"],  # repeated
            "title": pa.array(["x", None]).dictionary_encode(),
            "tokens": pa.array([[1], [2, 3]], pa.list_(pa.int32())),
        }
    ).replace_schema_metadata({"of": "the table"})
    path = tmp_path / name
    if name == "saved":
        save_shards(path, table)
    elif name.endswith(".parquet"):
        pa.parquet.write_table(table, path)
    else:
        path.write_bytes(arrow_stream(table))
    given = [path, f"--map={saved_map}", f"--out={tmp_path / 'out.parquet'}"]
    if pa.types.is_list(kind) and kind.value_type == pa.int8():  # as are the tokens
        assert run(monkeypatch, *given) == 2
        given.append("--vector_column=embedding")
    assert not run(monkeypatch, *given)
    written = pa.parquet.read_table(tmp_path / "out.parquet")
    others = table.drop("embedding")
    assert written.drop("embedding").schema.equals(others.schema)
    assert written.schema.metadata == table.schema.metadata
    assert written.drop("embedding").to_pylist() == others.to_pylist()
    assert written.schema.names == table.schema.names
    expected = alignment.load(saved_map).apply(np.array([[1, 2, 3], [4, 5, -6]], np.float32))
    expected = unit(np.asarray(expected))
    np.testing.assert_allclose(written["embedding"].to_pylist(), expected, atol=1e-6)


def arrow_stream(table):
    content = io.BytesIO()
    with pa.ipc.new_stream(content, table.schema) as writer:
        writer.write_table(table)
    return content.getvalue()


def save_shards(folder, table):
    """Shards of a row: `datasets` saves streams, and leaves intermediate results beside them."""
    folder.mkdir()
    names = [f"data-{row:05d}-of-00002.arrow" for row in range(2)]
    for row, name in enumerate(names):
        (folder / name).write_bytes(arrow_stream(table.slice(row, 1)))
    (folder / "cache-0.arrow").write_bytes(arrow_stream(pa.table({"indices": [1]})))
    state = {"_data_files": [{"filename": name} for name in names]}
    (folder / "state.json").write_text(json.dumps(state))


@pytest.mark.parametrize("suffix", [".npz", ".vec"])
def test_the_column_of_ids_names_the_rows_of_other_formats(
    tmp_path, saved_map, monkeypatch, capsys, suffix
):
    columns = {"id": [7, 8], "a": ["x", "y"], "b": ["x", "x"]}
    table = pa.table(columns | {"v": stored(pa.list_(pa.float32()))})
    pa.parquet.write_table(table, tmp_path / "new.parquet")
    out = tmp_path / f"out{suffix}"
    given = [tmp_path / "new.parquet", f"--map={saved_map}", f"--out={out}"]
    for more, message in (
        ([], "several columns of words .'a', 'b'.: .* choose one by --id_column"),
        (["--id_column=no"], "has not one column 'no' but id, a, b, v"),
        (["--vector_column=id"], "no column of lists of numbers .* or --vector_column is another"),
    ):
        assert run(monkeypatch, *given, *more) == 2
        assert re.search(message, capsys.readouterr().err)
    assert not run(monkeypatch, *given, "--id_column=id")
    assert vector_files.read(out).words == ["7", "8"]


@pytest.mark.parametrize("side", align_files.SIDES)
def test_each_side_finds_the_nearest_rows(tmp_path, monkeypatch, side):
    """Old vectors that are a rotation of new ones, off centre and of any length."""
    new = normal(2, 300, 8) + 0.3
    old = 3 * new @ np.linalg.qr(normal(3, 8, 8))[0] + 0.5
    aligner = alignment.fit("ridge", old[:200], new[:200], penalty=20.0)
    aligner.save(tmp_path / "map.npz")
    for name, vectors in (("old", old), ("new", new)):
        np.save(tmp_path / f"{name}.npy", vectors)

    def applied(name, side):
        out = tmp_path / f"{name}-{side}.npy"
        given = f"--map={tmp_path}/map.npz", f"--side={side}", f"--out={out}"
        assert not run(monkeypatch, tmp_path / f"{name}.npy", *given)
        written = np.load(out)
        np.testing.assert_allclose(np.linalg.norm(written, axis=1), 1, atol=1e-5)
        return written

    if side == "back":
        queries, store = applied("new", "back"), unit(old)
        np.testing.assert_allclose(unit(aligner.map_back(new)), queries, atol=1e-6)
    else:
        queries, store = applied("new", "target"), applied("old", "source")
    nearest = np.asarray(top_k(queries, store, 1).index)[:, 0]
    assert np.mean(nearest == np.arange(300)) > 0.95


def test_files_and_globs_are_mapped_into_a_folder(saved_map, tmp_path, monkeypatch, capsys):
    vectors = normal(0, 4, 3)
    for name in ("part-0.npy", "part-1.npy"):
        np.save(tmp_path / name, vectors)
    np.savez(tmp_path / "more.npz", vectors=vectors)
    table = pa.table({"id": [1, 2, 3, 4], "v": pa.array(vectors.tolist())})
    (tmp_path / "table.arrow").write_bytes(arrow_stream(table))
    out = tmp_path / "out"
    names = [tmp_path / "part-*.npy", tmp_path / "more.npz", tmp_path / "table.arrow"]
    given = [*names, f"--map={saved_map}", f"--out={out}"]
    assert not run(monkeypatch, *given)
    assert capsys.readouterr().out.count("4 vectors of 'old'") == 4
    written = {path.name for path in out.iterdir()}
    assert written == {"part-0.npy", "part-1.npy", "more.npz", "table.parquet"}
    expected = np.load(out / "part-0.npy")
    np.testing.assert_allclose(vector_files.read(out / "more.npz").vectors, expected, rtol=1e-6)
    assert pa.parquet.read_table(out / "table.parquet")["id"].to_pylist() == [1, 2, 3, 4]
    assert run(monkeypatch, *given) == 2
    assert "part-0.npy exists already" in capsys.readouterr().err
