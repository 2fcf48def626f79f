"""Texts as vectors: sentence encoders and frequency-weighted averages of word vectors.

Encoders by name: `minilm` is the sentence vector of all-MiniLM-L6-v2, `mpnet` of all-mpnet-base-v2,
`minilm_input` an average of MiniLM's input word-piece vectors, `glove` and `word2vec` averages of
GloVe and Word2Vec vectors, `wordllama` the average of WordLlama's token vectors. The path of a
folder with a BERT or an MPNet (config.json, model.safetensors, tokenizer.json) is the sentence
encoder in that folder. `use` (USE multilingual v3) and `e5` (multilingual-e5-small) know many
languages; E5 takes a text as a passage unless it begins with "query: ".

A text is cut after a number of word pieces: of its own tokenizer for a sentence encoder, of
MiniLM's for an average. Averages other than WordLlama's use smooth inverse frequency, the weight
a / (a + p(word)) of Arora et al. (2017), without their removal of a common component. WordLlama's
vectors were trained for plain averages.
"""

import functools
import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import safetensors.numpy
import tokenizers
from jaxtyping import Float

from common.data.array_cache import load_or_compute, load_or_compute_shards
from common.data.packages import PACKAGES, read_member
from common.data.sets import word_vectors
from common.encoders import bert, e5, minilm, mpnet, use
from common.errors import UserError
from common.progress import progress_bar

WORDLLAMA_VECTORS = "wordllama/weights/l2_supercat_256.safetensors"
WORDLLAMA_TOKENIZER = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"
SHARD_TEXTS = 2048  # a run that is killed loses one shard at most
RECIPE_VERSION = 1  # incremented when a change here or in bert.py changes the vectors
# GloVe's tokenizer splits "don't" into "do" and "n't", "film's" into "film" and "'s".
TOKEN = re.compile(r"n't|'[a-z]+|[a-z]+(?=n't)|[a-z]+|[0-9]+|[.!?]")


def encode(
    name: str, texts: Sequence[str], cache: Path, *, max_pieces: int | None, smoothing: float = 1e-3
) -> Float[np.ndarray, "n d"]:
    """Encodes texts, or reads their vectors from the cache if they have been encoded before.

    `name` is one of `ENCODERS`, or the path of a folder with a BERT or an MPNet, whose vectors are
    stored by shards, so that a run that was killed resumes. A text is cut after `max_pieces` word
    pieces, None: the maximum of a sentence encoder, and MiniLM's for an average; `smoothing` is a
    in the weights of words. Rows are float32, none zero.

    UserError: one text alone, no such encoder, a folder that cannot be read, a text of which the
    encoder makes no vector, a cache that cannot be written, or a failed download.
    """
    texts = bert.as_list(texts)
    encoder = functools.cache(lambda: loader(name)(read_files(name, cache), name))
    if max_pieces is None:
        max_pieces = bert.MAX_LENGTH if name in AVERAGES else encoder().max_length
    recipe: dict[str, object] = {"version": RECIPE_VERSION, "max_pieces": max_pieces}
    if name in ENCODERS:
        packages = {"mpnet": tuple(mpnet.PARTS), "use": ("use",), "e5": ("e5",)}.get(
            name, ("minilm", name if name in ("wordllama", "word2vec") else "glove")
        )
        recipe |= {"encoder": name, "packages": [PACKAGES[key].sha256 for key in packages]}
        if name in WEIGHTED:
            recipe["smoothing"] = smoothing
    else:
        recipe["files"] = fingerprints(read_files(name, cache))

    @functools.cache
    def warn_of_cut():
        tokenizer = (minilm.load_encoder(cache) if name in AVERAGES else encoder()).tokenizer
        bert.warn_of_cut(tokenizer, texts, max_pieces)

    stem, folder = Path(name).name, cache / "encodings"
    if name in AVERAGES:

        def average():
            warn_of_cut()
            return {"vectors": AVERAGES[name](texts, cache, max_pieces, smoothing)}

        return load_or_compute(folder, stem, [recipe, texts], average)["vectors"]

    def compute(shard, bar):
        warn_of_cut()  # of all texts, once there is something to encode
        found = bert.encode(encoder(), shard, max_length=max_pieces, bar=bar)
        invalid = ~(np.linalg.norm(found, axis=1) > 0.5)  # zero or NaN, not of norm 1
        if invalid.any():
            raise UserError(
                f"The encoder '{name}' gives no vector for the text '{shard[invalid.argmax()]}': "
                "remove it, or check the encoder's files."
            )
        return found

    label = f"encoding texts with {stem}"
    sizes = {"shard_size": SHARD_TEXTS, "unit": "text"}
    return load_or_compute_shards(folder, stem, recipe, texts, compute, progress=label, **sizes)


def as_query(name: str, text: str) -> str:
    """A text as an encoder by name wants it where it asks for other texts."""
    return e5.QUERY + text if name == "e5" else text


def loader(name: str) -> Callable[[dict[str, bytes], str], bert.SentenceEncoder]:
    """Returns what builds an encoder from the files of `read_files`, as `bert.load` does."""
    return LOADERS.get(name, bert.load)


def read_files(name: str, cache: Path) -> dict[str, bytes]:
    """The files of which `loader` builds an encoder, by name or folder; UserError if unreadable."""
    if name in SENTENCE_ENCODERS:
        return SENTENCE_ENCODERS[name](cache)
    files = {}
    for part in (*bert.FILES, *bert.OPTIONAL_FILES):
        try:
            files[part] = (Path(name) / part).read_bytes()
        except OSError as error:
            if part in bert.OPTIONAL_FILES and isinstance(error, FileNotFoundError):
                continue
            raise UserError(
                f"'{name}' is neither an encoder by name ({', '.join(SENTENCE_ENCODERS)}) nor a "
                f"folder with a readable {part} ({error.strerror}): correct the name or the path."
            ) from error
    return files


def fingerprints(files: dict[str, bytes]) -> list[str]:
    """Returns the hashes of an encoder's files, part of what determines its vectors."""
    return [hashlib.sha256(content).hexdigest() for content in files.values()]


def _minilm_input(texts, cache, max_pieces, smoothing):
    """p(word piece) is estimated on the given texts, as by Arora et al."""
    network, tokenizer, *_ = minilm.load_encoder(cache)
    tokenizer.enable_truncation(max_pieces - 2)  # without the two special ones
    table = np.asarray(network.words.embedding[...])
    pieces = [e.ids for e in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
    counts = np.bincount(np.concatenate(pieces).astype(int), minlength=len(table))
    return _averages(pieces, table, smoothing / (smoothing + counts / max(1, counts.sum())))


def _words(load, texts, cache, max_pieces, smoothing):
    """p(word) follows Zipf's law: the words of a space are in the order of their frequency."""
    words, table = load(cache)
    row_of = {word: row for row, word in enumerate(words)}
    rank = np.arange(1, len(table) + 1)
    frequency = 1 / (rank * np.sum(1 / rank))
    rows = [
        [row_of[token] for token in TOKEN.findall(text.lower()) if token in row_of]
        for text in _cut(texts, cache, max_pieces)
    ]
    return _averages(rows, table, smoothing / (smoothing + frequency))


def _wordllama(texts, cache, max_pieces, _):
    """The formula of wordllama 0.4.0, inference.py: no special tokens, no weights, no unit norm."""
    content = [
        read_member(PACKAGES["wordllama"], cache, member)
        for member in (WORDLLAMA_VECTORS, WORDLLAMA_TOKENIZER)
    ]
    table = safetensors.numpy.load(content[0])["embedding.weight"].astype(np.float32)
    tokenizer = tokenizers.Tokenizer.from_str(content[1].decode())
    encodings = tokenizer.encode_batch(_cut(texts, cache, max_pieces), add_special_tokens=False)
    return _averages([encoding.ids for encoding in encodings], table, np.ones(len(table)))


def _cut(texts, cache, max_pieces):
    """The beginnings of texts that MiniLM's tokenizer makes `max_pieces` word pieces of."""
    tokenizer = minilm.load_encoder(cache).tokenizer
    tokenizer.enable_truncation(max_pieces)
    return [
        text[: max((end for _, end in encoding.offsets), default=0)]
        for text, encoding in zip(texts, tokenizer.encode_batch(list(texts)), strict=True)
    ]


def _averages(
    rows: list[list[int]], table: Float[np.ndarray, "v d"], weight: Float[np.ndarray, " v"]
) -> Float[np.ndarray, "n d"]:
    """The weighted mean of each text's rows of the table; the table's mean for a text without."""
    vectors = np.tile(table.mean(axis=0), (len(rows), 1)).astype(np.float32)
    bar = progress_bar(rows, desc="averaging word vectors", unit="text", disable=len(rows) < 500)
    for indices, vector in zip(bar, vectors, strict=True):
        if indices:
            vector[:] = weight[indices] @ table[indices] / len(indices)
    return vectors


# By smooth inverse frequency:
WEIGHTED = {
    "minilm_input": _minilm_input,
    "glove": functools.partial(_words, word_vectors.whole_glove),
    "word2vec": functools.partial(_words, functools.partial(word_vectors.load, "word2vec")),
}
AVERAGES = WEIGHTED | {"wordllama": _wordllama}
# Name -> function of the cache.
SENTENCE_ENCODERS = {"minilm": minilm.files, "mpnet": mpnet.files, "use": use.files, "e5": e5.files}
LOADERS = {"use": use.load, "e5": e5.load}  # of encoders whose files are not Hugging Face's
ENCODERS = (*SENTENCE_ENCODERS, *AVERAGES)  # by name
