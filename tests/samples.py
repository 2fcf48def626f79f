"""A small model in the file format of Hugging Face, random rows, and spaces that correspond."""

import contextlib
import json
from collections.abc import Callable, Iterator
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
import tokenizers
from flax import nnx

from common import retrieval
from common.encoders import bert
from common.linear import preprocess, unit

TINY_BERT = {
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "vocab_size": 4,
    "max_position_embeddings": 20,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
}


def bert_files(draw: Callable[[tuple[int, ...]], np.ndarray], **more) -> dict[str, bytes]:
    """The files of a BERT of four words, its parameters drawn by shape; `more` of config.json."""
    state = nnx.state(nnx.eval_shape(lambda: bert.Bert(TINY_BERT, nnx.Rngs(0))))
    parameters = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        keys = [str(k.key) for k in path if hasattr(k, "key")]
        name = ".".join(bert.BERT_NAMES.get(key, key) for key in keys)
        parameters[name] = draw(leaf.shape[::-1] if keys[-1] == "kernel" else leaf.shape)
    vocabulary = {word: i for i, word in enumerate(("?", "land", "sea", "bridge"))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return {
        "config.json": json.dumps(TINY_BERT | more).encode(),
        "model.safetensors": safetensors.numpy.save(parameters),
        "tokenizer.json": tokenizer.to_str().encode(),
    }


def normal(seed: int, *shape: int) -> np.ndarray:
    """Numbers of the standard normal distribution, float32."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def unit_rows(seed: int, n: int, d: int) -> np.ndarray:
    """Random rows of unit norm, float32."""
    return unit(normal(seed, n, d))


def integer_rows(seed: int, n: int, d: int = 3) -> np.ndarray:
    """Few distinct rows: most similarities are tied, and products are exact in float32."""
    return np.random.default_rng(seed).integers(-1, 2, (n, d)).astype(np.float32)


def isometry(seed: int, rows: int, columns: int) -> np.ndarray:
    """A random matrix with orthonormal rows or columns, whichever are fewer."""
    q = np.linalg.qr(normal(seed, max(rows, columns), min(rows, columns)))[0]
    return q if rows >= columns else q.T


@contextlib.contextmanager
def small_blocks(*modules: ModuleType) -> Iterator[None]:
    """Lets modules stream blocks of eight rows, and retrieve among two tiles or more of keys."""
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(module, "block_rows", lambda columns, parts=1: 8)
        patch.setattr(retrieval, "MIN_TILE_KEYS", 6)
        patch.setattr(retrieval, "TILE_QUERIES", 8)
        jax.clear_caches()
        yield
    jax.clear_caches()


def csls_scores(x: np.ndarray, y: np.ndarray, neighbours: int) -> np.ndarray:
    """CSLS of all pairs of rows by its definition, summed in float64."""
    similarity = (x @ y.T).astype(np.float64)
    x_hubness = -np.sort(-similarity, axis=1)[:, :neighbours].mean(axis=1, keepdims=True)
    y_hubness = -np.sort(-similarity, axis=0)[:neighbours].mean(axis=0)
    return 2 * similarity - x_hubness - y_hubness


def rotated_spaces() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows x [240, 12]; y [260, 16], rotated, noisy and shuffled; the row of y of each row of x."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 12)) * np.linspace(2, 0.5, 12)
    y = rng.normal(size=(260, 16)) * 0.3
    rotation = np.linalg.qr(rng.normal(size=(16, 16)))[0][:12]
    y[:240] = x @ rotation + 0.05 * rng.normal(size=(240, 16))
    order = rng.permutation(260)
    return (x + 1).astype(np.float32), (y[order] - 2).astype(np.float32), np.argsort(order)[:240]


def shuffled_copy(
    n: int = 400, d: int = 20, d_target: int = 20, noise: float = 0.02
) -> tuple[jax.Array, jax.Array, np.ndarray]:
    """A preprocessed space, its rotated, noisy and shuffled copy, and the row of each row there."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)) * np.linspace(2, 0.5, d)
    rotation = np.linalg.qr(rng.normal(size=(max(d, d_target),) * 2))[0][:d, :d_target]
    y = x @ rotation + noise * rng.normal(size=(n, d_target))
    order = rng.permutation(n)
    return preprocess(jnp.asarray(x)), preprocess(jnp.asarray(y[order])), np.argsort(order)
