"""A BERT-like sentence encoder in Flax, read from a Hugging Face style folder of files.

Architecture: Devlin et al. 2019 (https://aclanthology.org/N19-1423), post-layer-norm encoder;
sentence vectors by masked mean pooling, or the first token's (Reimers & Gurevych 2019).
"""

import contextlib
import json
from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
import tokenizers
from flax import nnx
from jaxtyping import Array, Bool, Float, Int
from tqdm import tqdm

from common.errors import UserError

PARAMETER_NAMES = {  # ours -> the checkpoint's, where they differ
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "output_norm": "output.LayerNorm",
    "layers": "encoder.layer",
    "words": "embeddings.word_embeddings",
    "positions": "embeddings.position_embeddings",
    "token_types": "embeddings.token_type_embeddings",
    "embedding_norm": "embeddings.LayerNorm",
    "kernel": "weight",
    "embedding": "weight",
    "scale": "weight",
}


# What config.json may say: anything else would load, and give other vectors than it should.
REQUIRED = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
POOLINGS = ("mean", "cls")


class Layer(nnx.Module):
    """One transformer encoder layer."""

    def __init__(self, config: dict, rngs: nnx.Rngs):
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.heads = config["num_attention_heads"]
        self.query, self.key, self.value, self.attention_output = (
            nnx.Linear(width, width, rngs=rngs) for _ in range(4)
        )
        self.up = nnx.Linear(width, inner, rngs=rngs)
        self.down = nnx.Linear(inner, width, rngs=rngs)
        self.attention_norm = nnx.LayerNorm(width, epsilon=config["layer_norm_eps"], rngs=rngs)
        self.output_norm = nnx.LayerNorm(width, epsilon=config["layer_norm_eps"], rngs=rngs)

    def __call__(self, x: Float[Array, "b l d"], mask: Bool[Array, "b l"]) -> Float[Array, "b l d"]:
        q, k, v = (
            layer(x).reshape(*x.shape[:2], self.heads, -1)
            for layer in (self.query, self.key, self.value)
        )
        attended = jax.nn.dot_product_attention(q, k, v, mask=mask[:, None, None, :])
        x = self.attention_norm(x + self.attention_output(attended.reshape(x.shape)))
        return self.output_norm(x + self.down(jax.nn.gelu(self.up(x), approximate=False)))


class Bert(nnx.Module):
    """Token ids to contextual token vectors."""

    def __init__(self, config: dict, rngs: nnx.Rngs):
        width = config["hidden_size"]
        self.words = nnx.Embed(config["vocab_size"], width, rngs=rngs)
        self.positions = nnx.Embed(config["max_position_embeddings"], width, rngs=rngs)
        self.token_types = nnx.Embed(config["type_vocab_size"], width, rngs=rngs)
        self.embedding_norm = nnx.LayerNorm(width, epsilon=config["layer_norm_eps"], rngs=rngs)
        self.layers = nnx.List([Layer(config, rngs) for _ in range(config["num_hidden_layers"])])

    def __call__(self, ids: Int[Array, "b l"], mask: Bool[Array, "b l"]) -> Float[Array, "b l d"]:
        x = (
            self.words(ids)
            + self.positions.embedding[: ids.shape[1]]
            + self.token_types.embedding[0]
        )
        x = self.embedding_norm(x)
        for layer in self.layers:
            x = layer(x, mask)
        return x


def load(read: Callable[[str], bytes]) -> tuple[Bert, tokenizers.Tokenizer]:
    """Builds the model and its tokenizer from the files of a Hugging Face style folder.

    Args:
      read: returns the bytes of `config.json`, `model.safetensors` or `tokenizer.json`.

    Raises:
      UserError: the checkpoint is of another architecture, lacks a parameter or has one of another
        shape.
    """
    config = json.loads(read("config.json"))
    for key, known in REQUIRED.items():
        if config.get(key) not in (None, known):
            raise UserError(f"config.json has {key} '{config[key]}': only '{known}' can be run.")
    weights = safetensors.numpy.load(read("model.safetensors"))
    weights = {name.removeprefix("bert."): value for name, value in weights.items()}
    graph, state = nnx.split(nnx.eval_shape(lambda: Bert(config, nnx.Rngs(0))))

    def value(path, leaf):
        keys = [str(k.key) for k in path if hasattr(k, "key")]  # the rest is nnx's own `.value`
        name = ".".join(PARAMETER_NAMES.get(key, key) for key in keys)
        if name not in weights:
            raise UserError(f"model.safetensors has no parameter {name}: not a BERT checkpoint?")
        array = weights[name].T if keys[-1] == "kernel" else weights[name]
        if array.shape != leaf.shape:
            raise UserError(f"Parameter {name} has shape {array.shape}, config.json {leaf.shape}.")
        return jnp.asarray(array, jnp.float32)

    state = jax.tree_util.tree_map_with_path(value, state)
    tokenizer = tokenizers.Tokenizer.from_str(read("tokenizer.json").decode())
    tokenizer.no_padding()  # MiniLM's file pads every text to 128 tokens
    return nnx.merge(graph, state), tokenizer


def encode(
    model: Bert,
    tokenizer: tokenizers.Tokenizer,
    texts: Sequence[str],
    *,
    batch_size: int = 128,
    max_length: int = 256,
    pooling: str = "mean",
    progress: str | tqdm = "encoding",
) -> Float[np.ndarray, "n d"]:
    """Encodes texts as unit vectors, pooled from the last layer's token vectors and normalised.

    Texts are sorted by length, so that a batch is padded little and each padded length compiles
    once.

    Args:
      model: from `load`.
      tokenizer: from `load`.
      texts: n texts.
      batch_size: texts a step.
      max_length: longer texts are cut to this many tokens, special ones included.
      pooling: 'mean' of the token vectors, or the first one ('cls').
      progress: label of the progress bar, or a bar of the caller's to move on.

    Returns:
      float32 unit rows in the order of `texts`.
    """
    tokenizer.enable_truncation(max_length)
    ids = [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]
    order = np.argsort([len(i) for i in ids], kind="stable")
    out = np.empty((len(texts), model.words.features), np.float32)
    graph, state = nnx.split(model)
    # A few texts do not pay for a whole batch.
    batch_size = min(batch_size, 1 << (len(texts) - 1).bit_length())
    if isinstance(progress, str):
        shown = tqdm(total=len(texts), desc=progress, unit="text", disable=len(texts) < 500)
    else:
        shown = contextlib.nullcontext(progress)
    # Accelerators round a matrix product's factors by default: other vectors on every machine.
    with shown as bar, jax.default_matmul_precision("float32"):
        for start in range(0, len(texts), batch_size):
            rows = order[start : start + batch_size]
            lengths = np.ones(batch_size, np.int32)
            lengths[: len(rows)] = [len(ids[r]) for r in rows]
            tokens = np.zeros((batch_size, _padded(lengths.max())), np.int32)
            for slot, row in enumerate(rows):
                tokens[slot, : len(ids[row])] = ids[row]
            out[rows] = _step(graph, state, tokens, lengths, pooling)[: len(rows)]
            bar.update(len(rows))
    return out


@partial(jax.jit, static_argnames=("graph", "pooling"))
def _step(graph, state, tokens, lengths, pooling):
    mask = jnp.arange(tokens.shape[1]) < lengths[:, None]
    hidden = nnx.merge(graph, state)(tokens, mask)
    if pooling == "mean":
        pooled = jnp.sum(hidden * mask[..., None], 1) / jnp.maximum(lengths, 1)[:, None]
    else:
        pooled = hidden[:, 0]
    return pooled / jnp.maximum(jnp.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)


def _padded(length: int) -> int:
    """Rounds a length up so that few shapes compile: exact to 8, then by 8 to 64, then by 64."""
    unit = 1 if length <= 8 else 8 if length <= 64 else 64
    return -(-length // unit) * unit
