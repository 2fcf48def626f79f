"""Every reader of files of the project, with whole files that it takes: what `fuzz.py` damages."""

import contextlib
import hashlib
import io
import struct
import sys
import types
import zipfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import networkx as nx
import numpy as np
import tensorflow_datasets as tfds
from absl import flags
from ml_collections import config_flags

from anchor_opt import align_files, weights
from common import alignment, cli
from common.data import (
    corpus,
    dictionary,
    encoded,
    gensim_vectors,
    idx,
    images,
    kept,
    texts,
    vectors,
    wheels,
)
from common.errors import UserError
from lpl import nli_data
from tests.samples import bert_files, timm_shapes
from wasserstein_embed import networks

WORDS = ["the", "of", "café", "New York", "\u00a0", "1", "-2", "naïve", "x" * 40]
CONFIG = Path(__file__).parents[2] / "configs/anchor_opt/retrieval.py"
ARGUMENTS = b"""--config.num_words=5
--config.methods=gt,seed
--config.random_seeds=(0, 1)
--config.seed_noise=0.5
--config.quick
--config.algorithm1.plan=soft
--workdir=runs/ao"""
TABLE = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)


class Reader(NamedTuple):
    """Files by name, a dict standing for a zip of its members, and what reads their folder.

    `memory` is the most that it may take, in multiples of the files, unpacked, and 4 MiB.
    """

    files: dict[str, bytes | dict[str, bytes]]
    read: Callable[[Path], object]
    memory: float = 2.0


def npy(array: np.ndarray) -> bytes:
    """The bytes of a .npy file."""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()


def members(**arrays: np.ndarray) -> dict[str, bytes]:
    """What an .npz of these arrays holds."""
    return {f"{name}.npy": npy(np.asarray(array)) for name, array in arrays.items()}


def _text(header: bool, end: str = "") -> bytes:
    rows = [f"{len(WORDS)} {TABLE.shape[1]}"] if header else []
    for word, row in zip(WORDS, TABLE, strict=True):
        rows.append(f"{word} {' '.join(map(repr, row.tolist()))}{end}")
    return "".join(row + "\n" for row in rows).encode()


def _binary() -> bytes:
    content = f"{len(WORDS)} {TABLE.shape[1]}\n".encode()
    for word, row in zip(WORDS, TABLE, strict=True):
        content += word.replace(" ", "_").encode() + b" " + row.tobytes() + b"\n"
    return content


def _vectors(name: str, content, words: str | None = None) -> Reader:
    files = {name: content} | ({words: "\n".join(WORDS).encode()} if words else {})
    return Reader(files, lambda p: vectors.read(p / name, p / words if words else None))


def _idx() -> Reader:
    files = {}
    for name, count in (("train", 5), ("t10k", 3)):
        pictures = np.arange(count * 12, dtype=np.uint8)
        files[f"{name}-images-idx3-ubyte.gz"] = struct.pack(">4B3I", 0, 0, 8, 3, count, 4, 3)
        files[f"{name}-images-idx3-ubyte.gz"] += pictures.tobytes()
        files[f"{name}-labels-idx1-ubyte"] = struct.pack(">4BI", 0, 0, 8, 1, count)
        files[f"{name}-labels-idx1-ubyte"] += bytes(range(count))
    return Reader(files, lambda p: [idx.load(p, split) for split in ("train", "test")])


def _bert() -> Reader:
    files = bert_files(
        lambda shape: np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape),
        model_type="bert",
    )

    def read(folder):
        (folder / "texts").write_text("land sea\nbridge\n")
        return texts.encode_file(str(folder), folder / "texts", folder / "out.npz", folder)

    files |= {
        "modules.json": b'[{"type": "sentence_transformers.models.Pooling"}]',
        "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}',
        "sentence_bert_config.json": b'{"max_seq_length": 10}',
    }
    return Reader(files, read)


def _encoded() -> Reader:
    rng = np.random.default_rng(0)
    views = {}
    for name in ("a.npz", "b.npz"):
        arrays = {"train": rng.normal(size=(6, 3)), "test": rng.normal(size=(4, 3))}
        arrays |= {"train_labels": np.arange(6) % 2, "test_labels": np.arange(4) % 2}
        views[name] = members(**arrays)
    none = dict(texts="imdb", num_train=1, num_test=1, max_pieces=9, smoothing=1e-3)
    return Reader(
        views,
        lambda p: encoded.load(str(p / "a.npz"), str(p / "b.npz"), cache=p, **none),
    )


def _timm() -> Reader:
    shapes = timm_shapes(width=64, depth=1, patch=2, side=2, channels=1)
    arrays = {name: np.zeros(shape, np.float16) for name, shape in shapes.items()}
    return Reader({"w.npz": members(**arrays)}, lambda p: weights.load(p / "w.npz", (0.5,), (1.0,)))


def _aligner() -> Reader:
    fields = alignment.fit("procrustes", TABLE, TABLE[:, :3]).__dict__
    return Reader({"map.npz": members(**fields)}, lambda p: alignment.load(p / "map.npz"))


def _kept() -> Reader:
    name = f"a-{hashlib.sha256(b'0').hexdigest()[:24]}.npz"
    content = members(text=np.arange(9, dtype=np.uint8), labels=np.arange(4))
    return Reader({name: content}, lambda p: kept.arrays(p, "a", 0, dict))


def zipped(content: dict[str, bytes], compressed: bool = False) -> bytes:
    """A zip of members, always the same bytes."""
    packed = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(packed, "w", kind) as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name), data, kind)
    return packed.getvalue()


def _wheel() -> Reader:
    content = {"data/a.txt": b"some data"}
    whole = hashlib.sha256(zipped(content)).hexdigest()
    # Too large for any disk, so that a missing file is not asked of pip.
    record = wheels.Wheel("isthmus-none", "0", "a.whl", whole, 1 << 60, "none", "here")
    return Reader({"wheels/a.whl": content}, lambda p: wheels.read_member(record, p, "data/a.txt"))


class TinyFaults(tfds.core.GeneratorBasedBuilder):
    """A prepared set, as those of TFDS's catalogue are found in the cache."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        image = tfds.features.Tensor(shape=(2, 3, 1), dtype=np.uint8)
        label = tfds.features.ClassLabel(num_classes=3)
        features = tfds.features.FeaturesDict({"image": image, "label": label})
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for i in range(6):
            yield i, {"image": np.full((2, 3, 1), i, np.uint8), "label": i % 3}


def _prepared_files(name: str, folder: Path) -> dict[str, bytes]:
    builder = tfds.builder(name, data_dir=folder, file_format="array_record")
    with contextlib.redirect_stdout(io.StringIO()):
        builder.download_and_prepare()
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {f"tfds/{path.relative_to(folder)}": path.read_bytes() for path in found}


def _prepared(folder: Path) -> Reader:
    files = _prepared_files("tiny_faults", folder)
    return Reader(files, lambda p: images.load("tiny_faults", "train", p))


class TinyPairs(tfds.core.GeneratorBasedBuilder):
    """As SNLI and MultiNLI are there."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        text, label = tfds.features.Text(), tfds.features.ClassLabel(num_classes=3)
        features = {"premise": text, "hypothesis": text, "label": label}
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for i in range(6):
            yield i, {"premise": f"one {i}", "hypothesis": f"other {i}", "label": i % 3}


def _pairs_of_tfds(folder: Path) -> Reader:
    files = _prepared_files("tiny_pairs", folder)

    def read(cache):
        return nli_data._read(nli_data._catalogue("tiny_pairs", cache), "train", 3)

    return Reader(files, read)


def _graph(ending: str, write: Callable) -> Reader:
    content = io.BytesIO()
    write(nx.Graph(nx.karate_club_graph().edges), content)
    name = f"g{ending}"
    # networkx's parsers hold a number of Python for each byte, and its graphs dicts for each node.
    return Reader({name: content.getvalue()}, lambda p: networks.read(p / name, True), memory=40)


def _gensim(folder: Path):
    """Keys and numbers out of any bytes."""
    words = _bytes(folder / "keys")[:50_000].decode("latin-1").split("\n")
    content = _bytes(folder / "numbers")
    found = np.frombuffer(content[: len(content) // 4 * 4], np.float32)
    found = found.reshape(len(words), -1) if len(found) % len(words) == 0 else found
    keyed = types.SimpleNamespace(index_to_key=words, vectors=found)
    return gensim_vectors.from_gensim(keyed)


def _arguments(folder: Path):
    """Flags as a user types them, one a line; the command line says its sentence and leaves."""
    typed = _bytes(folder / "arguments").replace(b"\0", b"").decode("utf-8", "replace")
    values, said = flags.FlagValues(), io.StringIO()
    config_flags.DEFINE_config_file("config", None, "", flag_values=values, lock_config=True)
    flags.DEFINE_string("workdir", None, "", flag_values=values)
    arguments = ["main", f"--config={CONFIG}", *typed.split("\n")]
    replaced = mock.patch.object(flags, "FLAGS", values), mock.patch.object(sys, "argv", arguments)
    try:
        with replaced[0], replaced[1], contextlib.redirect_stderr(said):
            return cli._parse(arguments), cli.settle(values.config)
    except SystemExit as error:
        assert error.code == 2
        raise UserError(said.getvalue().removesuffix("\n")) from error


def _bytes(path: Path) -> bytes:
    """For what a user gives otherwise than in a file."""
    return path.read_bytes() if path.exists() else b""


def _seeds(folder: Path):
    space = align_files.read_space(folder / "a.npz", None, 100)
    return align_files.read_seeds(folder / "seeds.txt", space, space)


def _dictionary(folder: Path):
    pairs = dictionary.load(str(folder / "d.txt"), folder)
    found = dictionary.rows(pairs, WORDS, WORDS)
    return dictionary.split(found.pairs, 2, 1, np.random.default_rng(0))


def _corpus(folder: Path):
    lines = _bytes(folder / "t.txt").decode("latin-1").split("\n")
    return corpus.build(lines, num_words=9, subsample=1e-3, gap=2, random_seed=0)


@cache
def table(folder: Path) -> dict[str, Reader]:
    """All readers by name; `folder` takes what has to be prepared."""
    tfds.disable_progress_bar()
    pairs = "".join(f"{w}\t{w}\n" for w in WORDS).encode()
    graphs = {
        ".txt": nx.write_edgelist,
        ".gml": nx.write_gml,
        ".graphml": nx.write_graphml,
        ".gexf": nx.write_gexf,
        ".net": nx.write_pajek,
        ".adjlist": nx.write_adjlist,
        ".g6": nx.write_graph6,
        ".csv": partial(nx.write_edgelist, delimiter=",", data=False),
    }
    whole = members(vectors=TABLE, words=np.array(WORDS))
    return {
        "word2vec .txt": _vectors("a.txt", _text(header=True)),
        "fastText .vec": _vectors("a.vec", _text(header=True, end=" ")),
        "fastText .vec.gz": _vectors("a.vec.gz", _text(header=True, end=" ")),
        "GloVe .txt": _vectors("g.txt", _text(header=False)),
        "word2vec .bin": _vectors("a.bin", _binary()),
        "word2vec .bin.gz": _vectors("a.bin.gz", _binary()),
        "vectors .npz": _vectors("a.npz", whole),
        "vectors .npy and word list": _vectors("a.npy", npy(TABLE), "w.txt"),
        "vectors .npz and word list": _vectors("a.npz", members(vectors=TABLE), "w.txt.gz"),
        "an array alone, .npz": Reader(
            {"a.npz": members(x=TABLE)}, lambda p: vectors.read_array(p / "a.npz")
        ),
        "an array alone, .npy": Reader(
            {"a.npy": npy(TABLE)}, lambda p: vectors.read_array(p / "a.npy")
        ),
        "seeds of align": Reader(
            {"a.npz": members(vectors=TABLE), "seeds.txt": b"0 1\n1 2\n5 7\n"}, _seeds
        ),
        "pairs": Reader({"d.txt": pairs}, lambda p: vectors.read_pairs(p / "d.txt")),
        "dictionary": Reader({"d.txt": pairs}, _dictionary),
        "IDX": _idx(),
        "BERT folder": _bert(),
        "encoded .npz": _encoded(),
        "timm weights .npz": _timm(),
        "aligner .npz": _aligner(),
        "kept arrays": _kept(),
        "texts": Reader(
            {"t.txt": b"one\ntwo three\ncaf\xc3\xa9\n"}, lambda p: texts.read(p / "t.txt")
        ),
        "corpus": Reader({"t.txt": b"It's a text.\nAnother text of words.\n"}, _corpus),
        "gensim": Reader({"keys": b"a\nb\nc", "numbers": TABLE[:3].tobytes()}, _gensim),
        "wheel": _wheel(),
        "prepared TFDS set": _prepared(folder / "images"),
        "sentence pairs of TFDS": _pairs_of_tfds(folder / "pairs"),
        # absl compares a flag that it does not know with all that it knows.
        "flags": Reader({"arguments": ARGUMENTS}, _arguments, memory=4),
        **{f"graph {ending}": _graph(ending, write) for ending, write in graphs.items()},
    }
