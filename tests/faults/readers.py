"""Every reader of files that come from outside, with valid files for it to read."""

import dataclasses
import gzip
import hashlib
import io
import json
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import msgpack
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import safetensors.numpy
import tensorflow_datasets as tfds
from numpy.lib import format as npy_format

from common import alignment, likeness
from common.data import array_cache, builders, packages
from common.data.readers import numpy_files, pair_files, vector_files
from common.data.sets import freedict, images, word_frequency
from common.files import read_arrays, write_arrays
from common.run import train
from common.run.workdir import Workdir
from common.spaces import labelled_vectors
from isthmus.texts import files as text_files
from tests.faults.killed_run import step
from tests.samples import bert_files

WORDS = ["the", "of", "café", "New York", "\u00a0", "1", "-2", "naïve", "x" * 40]
TABLE = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)


class TinyRows(builders.PackageBuilder):
    """A data set of a few rows in the form of those that are read from packages."""

    VERSION = tfds.core.Version("1.0.0")

    def _source(self):
        columns = {"row": builders.array_column((), np.int32), "text": builders.TEXTS}
        return packages.PACKAGES["bbc"], columns

    def _table(self):
        texts = [f"text {row}" * 500 for row in range(9)]
        return {"row": np.arange(9, dtype=np.int32), "text": texts}


class Reader(NamedTuple):
    """Valid files by name, and the function that reads the folder they lie in.

    The content of a zip archive is given as a dict of its members; a file whose name ends with .gz
    is compressed when it is written.
    """

    files: dict[str, bytes | dict[str, bytes]]
    read: Callable[[Path], object]


def npy(array: np.ndarray) -> bytes:
    """The bytes of a .npy file."""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()


def npy_header(shape: tuple, dtype: object, data: bytes = b"", version: int = 1) -> bytes:
    """A .npy whose header may state anything of the data behind it."""
    content = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    if version == 1:
        npy_format.write_array_header_1_0(content, header)
    else:
        npy_format.write_array_header_2_0(content, header)
    return content.getvalue().replace(b"NUMPY\2", b"NUMPY%c" % version) + data


def members(**arrays: np.ndarray) -> dict[str, bytes]:
    """The members of an .npz with these arrays."""
    return {f"{name}.npy": npy(np.asarray(array)) for name, array in arrays.items()}


def packed(
    name: str, content: bytes | dict[str, bytes], compression: int = zipfile.ZIP_STORED
) -> bytes:
    """The bytes of a file: members zipped (always to the same bytes), .gz files compressed."""
    if isinstance(content, dict):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for member, data in content.items():
                archive.writestr(zipfile.ZipInfo(member), data, compression)
        content = buffer.getvalue()
    return gzip.compress(content, 1, mtime=0) if name.endswith(".gz") else content


def write(files: dict[str, bytes], folder: Path) -> None:
    """Writes files, packed already, into a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def stored(write: Callable, *arguments: object, **options: object) -> bytes:
    """The bytes that a function of pyarrow writes into a file."""
    content = io.BytesIO()
    write(*arguments, content, **options)
    return content.getvalue()


def columns(words: Sequence[str], table: np.ndarray, /, **others: object) -> pa.Table:
    """A table of Arrow with lists of a fixed size; `others` replace or add columns."""
    lists = pa.FixedSizeListArray.from_arrays(table.ravel(), table.shape[1])
    return pa.table({"name": pa.array(words, pa.string()), "x": lists} | others)


def vector_text(words: Sequence[str], table: np.ndarray, header: bool, end: str = "") -> bytes:
    """A word and its numbers a line, behind which fastText leaves a space."""
    lines = [f"{len(words)} {table.shape[1]}"] if header else []
    for word, row in zip(words, table, strict=True):
        lines.append(f"{word} {' '.join(map(repr, row.tolist()))}{end}")
    return "".join(line + "\n" for line in lines).encode()


def vector_binary(words: Sequence[str], table: np.ndarray, end: bytes = b"\n") -> bytes:
    """word2vec's binary format, in which a word has no space."""
    content = f"{len(words)} {table.shape[1]}\n".encode()
    for word, row in zip(words, table.astype("<f4"), strict=True):
        content += word.replace(" ", "_").encode() + b" " + row.tobytes() + end
    return content


def _arrow_stream(words: Sequence[str], table: np.ndarray) -> bytes:
    """Record batches of two rows, with lists of any length of float64."""

    def write(columns, file):
        with pa.ipc.new_stream(file, columns.schema) as writer:
            writer.write_table(columns, max_chunksize=2)

    lists = pa.array(table.tolist(), pa.large_list(pa.float64()))
    return stored(write, columns(words, table, x=lists))


# Format -> name of a file, and its content for words and vectors.
FORMATS: dict[str, tuple[str, Callable[[Sequence[str], np.ndarray], bytes | dict[str, bytes]]]] = {
    "word2vec .txt": ("a.txt", lambda *space: vector_text(*space, header=True)),
    "GloVe .txt": ("g.txt", lambda *space: vector_text(*space, header=False).removesuffix(b"\n")),
    "fastText .vec.gz": ("a.vec.gz", lambda *space: vector_text(*space, header=True, end=" ")),
    "word2vec .bin": ("a.bin", vector_binary),
    "word2vec .bin.gz": ("b.bin.gz", lambda *space: vector_binary(*space, end=b"")),
    "vectors .npz": ("a.npz", lambda words, x: members(vectors=x, words=np.array(words, str))),
    "vectors .npz, texts": (
        "b.npz",
        lambda words, x: members(vectors=x, **numpy_files.word_arrays(words)),
    ),
    "parquet": (
        "a.parquet",
        lambda *space: stored(pa.parquet.write_table, columns(*space), row_group_size=2),
    ),
    "Feather": ("a.feather", lambda *space: stored(pa.feather.write_feather, columns(*space))),
    "Arrow stream": ("a.arrow", _arrow_stream),
    "JSON lines": (
        "a.jsonl",
        lambda words, x: "".join(
            json.dumps({"id": word, "embedding": row}) + "\n"
            for word, row in zip(words, x.tolist(), strict=True)
        ).encode(),
    ),
}


def _vectors(name: str, content: bytes | dict[str, bytes], words: str | None = None) -> Reader:
    files = {name: content} | ({words: "\n".join(WORDS).encode()} if words else {})
    return Reader(files, lambda p: vector_files.read(p / name, p / words if words else None))


def idx(array: np.ndarray) -> bytes:
    """The content of an IDX file of bytes."""
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes((0, 0, 8, array.ndim)) + sizes + array.astype(np.uint8).tobytes()


def idx_files(*counts: int) -> dict[str, bytes]:
    """The four files of images of 4 x 3 pixels, of which one is compressed."""
    files = {}
    for name, end, count in zip(("train", "t10k"), (".gz", ""), counts, strict=True):
        files[f"{name}-images-idx3-ubyte{end}"] = idx(np.arange(count * 12).reshape(count, 4, 3))
        files[f"{name}-labels-idx1-ubyte"] = idx(np.arange(count))
    return files


def _bert() -> Reader:
    files = bert_files(lambda shape: np.full(shape, 0.5, np.float32), model_type="bert")
    files["modules.json"] = b'[{"type": "sentence_transformers.models.Pooling"}]'
    files["1_Pooling/config.json"] = b'{"pooling_mode_mean_tokens": true}'
    files["sentence_bert_config.json"] = b'{"max_seq_length": 10}'

    def read(folder):
        (folder / "texts").write_text("land sea\nbridge\n")
        return text_files.encode_file(str(folder), folder / "texts", folder / "out.npz", folder)

    return Reader(files, read)


def _encoded() -> Reader:
    arrays = {"train": np.ones((6, 3)), "test": np.ones((4, 3))}
    labels = {"train_labels": np.arange(6) % 2, "test_labels": np.arange(4) % 2}
    files = dict.fromkeys(("a.npz", "b.npz"), members(**arrays, **labels))
    unused = {"texts": "imdb", "num_train": 1, "num_test": 1, "max_pieces": 9, "smoothing": 1e-3}
    return Reader(
        files,
        lambda p: labelled_vectors.load(str(p / "a.npz"), str(p / "b.npz"), cache=p, **unused),
    )


def archive(kind: str, files: dict[str, bytes]) -> bytes:
    """A package file: a wheel, or the tar archive of npm or Debian."""
    if kind == ".whl":
        return packed(kind, files)
    buffer = io.BytesIO()
    # The lowest preset of xz needs the least memory.
    options = {"mode": "w:gz"} if kind == ".tgz" else {"mode": "w:xz", "preset": 0}
    with tarfile.open(fileobj=buffer, **options) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    if kind == ".tgz":
        return buffer.getvalue()
    content = b"!<arch>\n"
    for name, part in {b"control.tar.xz": b"odd", b"data.tar.xz": buffer.getvalue()}.items():
        content += name.ljust(48) + f"{len(part)}".encode().ljust(10) + b"`\n" + part
        content += b"\n" * (len(part) % 2)
    return content


def _dictionary() -> Reader:
    """Small packages in the place of pinned ones; what is read of them has to be exact."""
    text = "house //haʊs// <n>\ntalo\n".encode()
    index = f"house\tA\t{chr(ord('A') + len(text))}\n"  # Z is 25 in base 64
    words = msgpack.packb([word_frequency.HEADER, ["talo"]])
    contents = {
        "freedict_finnish": {
            f"./{freedict.MEMBER.format('fin')}.dict.dz": gzip.compress(text),
            f"./{freedict.MEMBER.format('fin')}.index": index.encode(),
        },
        "wordfreq": {"wordfreq/data/large_fi.msgpack.gz": gzip.compress(words)},
    }
    files, entries = {}, {}
    for key, of_package in contents.items():
        package = packages.PACKAGES[key]
        content = archive(Path(package.filename).suffix, of_package)
        files[f"packages/{package.filename}"] = content
        digest = hashlib.sha256(content).hexdigest()
        entries[key] = dataclasses.replace(package, sha256=digest)

    def read(folder):
        with mock.patch.dict(packages.PACKAGES, entries):
            return exactly([("house", "talo")], freedict.load(freedict.FINNISH, folder))

    return Reader(files, read)


def exactly(expected: object, content: object) -> object:
    """Returns what was read, where a checksum makes any damage known."""
    assert content == expected, f"read {content!r:.200}"
    return content


def _written(read: Callable[[Path], object]) -> Reader:
    """A reader whose files are what it writes into an empty folder, with checksums."""
    with tempfile.TemporaryDirectory() as name:
        first, folder = read(Path(name)), Path(name)
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
    return Reader(files, lambda p: exactly(first, read(p)))


def cached(folder: Path) -> object:
    """A cached array, and vectors cached in shards."""
    texts = ["one", "two", "three"]
    options = {"shard_size": 2, "progress": None, "unit": "text"}
    vectors = array_cache.load_or_compute_shards(
        folder, "b", 1, texts, lambda shard, bar: np.ones((len(shard), 4)), **options
    )
    array = array_cache.load_or_compute(folder, "a", 1, lambda: {"x": TABLE})["x"]
    return array.tolist(), vectors.tolist()


def _run(folder: Path) -> object:
    """A finished part of a run with its array, and a training with checkpoints."""
    work = Workdir(folder, {"a": 1})

    def compute():
        write_arrays(folder / "a.npz", {"x": TABLE})
        return [0.25]

    options = {"num_steps": 4, "chunk": 2, "work": work, "part": "fit", "progress": False}
    try:
        part = work.part("a", compute, "a.npz")
        table = read_arrays(folder / "a.npz")["x"]
        with mock.patch.object(train, "SAVE_SECONDS", 0):  # a checkpoint after each chunk
            state = train.run(step, jnp.zeros(8), jax.random.key(0), 0, **options)
        work.metrics.close("fit")
    finally:
        work._lock.close()
    return part, table.tolist(), state.tolist()


def data_set(folder: Path) -> object:
    """A small set in the form of those that are built from packages."""
    table = builders.read_table(TinyRows(cache=folder), folder)
    return table["row"].tolist(), table["text"]


def _bfloat16() -> bytes:
    arrays = {"vectors": TABLE.astype(jnp.bfloat16), "other": TABLE[:2].astype(np.float16)}
    return safetensors.numpy.save(arrays)


def readers() -> dict[str, Reader]:
    """All readers by name."""
    aligner = dict(alignment.fit("procrustes", TABLE, TABLE[:, :3]).__dict__)
    aligner |= {
        f"profile_{k}": v for k, v in likeness.profile(jnp.asarray(TABLE))._asdict().items()
    }
    del aligner["profile"]
    pairs = "".join(f"{w}\t{w}\n" for w in WORDS).encode()
    table = "source,target\n" + "".join(f'"{w}","{w}"\n' for w in WORDS)
    return {
        **{name: _vectors(file, write(WORDS, TABLE)) for name, (file, write) in FORMATS.items()},
        "vectors .npy and words": _vectors("a.npy", npy(TABLE), "w.txt"),
        "safetensors": _vectors("a.safetensors", safetensors.numpy.save({"x": TABLE})),
        "array": _vectors("a.npz", members(x=TABLE)),
        "pairs": Reader({"d.txt": pairs}, lambda p: pair_files.read(p / "d.txt")),
        "pairs .csv": Reader({"d.csv": table.encode()}, lambda p: pair_files.read(p / "d.csv")),
        "texts": Reader(
            {"t.txt": "one\ntwo\ncafé\n".encode()}, lambda p: text_files.read(p / "t.txt")
        ),
        "IDX": Reader(
            idx_files(5, 3), lambda p: [images.read_idx(p, split) for split in ("train", "test")]
        ),
        "BERT": _bert(),
        "encoded texts": _encoded(),
        "aligner": Reader({"m.npz": members(**aligner)}, lambda p: alignment.load(p / "m.npz")),
        "safetensors, bfloat16": _vectors("a.safetensors", _bfloat16()),
        "FreeDict, Debian archive and wheel": _dictionary(),
        "cached arrays": _written(cached),
        "run": _written(_run),
        "data set": _written(data_set),
    }
