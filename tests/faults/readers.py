"""Every reader of files that come from outside, with valid files for it to read."""

import gzip
import hashlib
import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import safetensors.numpy

from common import alignment
from common.data import (
    images,
    labelled_vectors,
    packages,
    text_files,
    torch_file,
    vector_files,
)
from tests.samples import bert_files

WORDS = ["the", "of", "café", "New York", "\u00a0", "1", "-2", "naïve", "x" * 40]
TABLE = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)


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


def members(**arrays: np.ndarray) -> dict[str, bytes]:
    """The members of an .npz with these arrays."""
    return {f"{name}.npy": npy(np.asarray(array)) for name, array in arrays.items()}


def packed(name: str, content: bytes | dict[str, bytes]) -> bytes:
    """The bytes of a file: members zipped (always to the same bytes), .gz files compressed."""
    if isinstance(content, dict):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for member, data in content.items():
                archive.writestr(zipfile.ZipInfo(member), data)
        content = buffer.getvalue()
    return gzip.compress(content, 1, mtime=0) if name.endswith(".gz") else content


def write(files: dict[str, bytes], folder: Path) -> None:
    """Writes files, packed already, into a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _vector_text(header: bool, end: str = "") -> bytes:
    lines = [f"{len(WORDS)} {TABLE.shape[1]}"] if header else []
    for word, row in zip(WORDS, TABLE, strict=True):
        lines.append(f"{word} {' '.join(map(repr, row.tolist()))}{end}")
    return "".join(line + "\n" for line in lines).encode()


def _vector_binary() -> bytes:
    content = f"{len(WORDS)} {TABLE.shape[1]}\n".encode()
    for word, row in zip(WORDS, TABLE, strict=True):
        content += word.replace(" ", "_").encode() + b" " + row.tobytes() + b"\n"
    return content


def _vectors(name: str, content, words: str | None = None) -> Reader:
    files = {name: content} | ({words: "\n".join(WORDS).encode()} if words else {})
    return Reader(files, lambda p: vector_files.read(p / name, p / words if words else None))


def _columns(write: Callable) -> bytes:
    content = io.BytesIO()
    lists = pa.FixedSizeListArray.from_arrays(TABLE.ravel(), TABLE.shape[1])
    write(pa.table({"words": WORDS, "vectors": lists}), content)
    return content.getvalue()


def _idx() -> Reader:
    files = {}
    for name, count in (("train", 5), ("t10k", 3)):
        header = struct.pack(">4B3I", 0, 0, 8, 3, count, 4, 3)
        files[f"{name}-images-idx3-ubyte.gz"] = header + bytes(range(count * 12))
        header = struct.pack(">4BI", 0, 0, 8, 1, count)
        files[f"{name}-labels-idx1-ubyte"] = header + bytes(range(count))
    return Reader(files, lambda p: [images.read_idx(p, split) for split in ("train", "test")])


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


def _package() -> Reader:
    content = {"data/a.txt": b"some data"}
    digest = hashlib.sha256(packed("a.whl", content)).hexdigest()
    record = packages.Package(
        filename="none-0-py3-none-any.whl", sha256=digest, licence="none", source="none"
    )
    return Reader(
        {"packages/none-0-py3-none-any.whl": content},
        lambda p: packages.read_member(record, p, "data/a.txt"),
    )


def _checkpoint(layout: str) -> Reader:
    content = (Path(__file__).parents[1] / "fixtures" / f"torch_{layout}.pt").read_bytes()
    return Reader({"a.pt": content}, lambda p: torch_file.read((p / "a.pt").read_bytes(), "a.pt"))


def readers() -> dict[str, Reader]:
    """All readers by name."""
    aligner = alignment.fit("procrustes", TABLE, TABLE[:, :3]).__dict__
    pairs = "".join(f"{w}\t{w}\n" for w in WORDS).encode()
    return {
        "word2vec .txt": _vectors("a.txt", _vector_text(header=True)),
        "GloVe .txt": _vectors("g.txt", _vector_text(header=False)),
        "fastText .vec.gz": _vectors("a.vec.gz", _vector_text(header=True, end=" ")),
        "word2vec .bin": _vectors("a.bin", _vector_binary()),
        "vectors .npz": _vectors("a.npz", members(vectors=TABLE, words=np.array(WORDS))),
        "vectors .npy and words": _vectors("a.npy", npy(TABLE), "w.txt"),
        "parquet": _vectors("a.parquet", _columns(pa.parquet.write_table)),
        "Feather": _vectors("a.feather", _columns(pa.feather.write_feather)),
        "safetensors": _vectors("a.safetensors", safetensors.numpy.save({"x": TABLE})),
        "array": _vectors("a.npz", members(x=TABLE)),
        "pairs": Reader({"d.txt": pairs}, lambda p: vector_files.read_pairs(p / "d.txt")),
        "texts": Reader(
            {"t.txt": "one\ntwo\ncafé\n".encode()}, lambda p: text_files.read(p / "t.txt")
        ),
        "IDX": _idx(),
        "BERT": _bert(),
        "encoded texts": _encoded(),
        "aligner": Reader({"m.npz": members(**aligner)}, lambda p: alignment.load(p / "m.npz")),
        "package": _package(),
        "PyTorch, zip": _checkpoint("zip"),
        "PyTorch, legacy": _checkpoint("legacy"),
    }
