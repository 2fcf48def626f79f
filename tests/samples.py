"""A small model in the file format of Hugging Face, and two spaces that correspond."""

import json
from collections.abc import Callable

import jax
import numpy as np
import safetensors.numpy
import tokenizers
from flax import nnx

from common import bert

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
    """Returns name -> content of the files of a BERT whose vocabulary are four words.

    Args:
      draw: shape -> float32 values of a parameter.
      **more: further values of config.json.
    """
    state = nnx.state(nnx.eval_shape(lambda: bert.Bert(TINY_BERT, nnx.Rngs(0))))
    parameters = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        keys = [str(k.key) for k in path if hasattr(k, "key")]
        name = ".".join(bert.PARAMETER_NAMES.get(key, key) for key in keys)
        parameters[name] = draw(leaf.shape[::-1] if keys[-1] == "kernel" else leaf.shape)
    vocabulary = {word: i for i, word in enumerate(("?", "land", "sea", "bridge"))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return {
        "config.json": json.dumps(TINY_BERT | more).encode(),
        "model.safetensors": safetensors.numpy.save(parameters),
        "tokenizer.json": tokenizer.to_str().encode(),
    }


def rotated_spaces() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A space, and another with more dimensions and rows: rotated, with noise, and shuffled.

    Returns:
      x [240, 12], y [260, 16], and the row of y that corresponds to each row of x.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 12)) * np.linspace(2, 0.5, 12)
    y = rng.normal(size=(260, 16)) * 0.3
    rotation = np.linalg.qr(rng.normal(size=(16, 16)))[0][:12]
    y[:240] = x @ rotation + 0.05 * rng.normal(size=(240, 16))
    order = rng.permutation(260)
    return (x + 1).astype(np.float32), (y[order] - 2).astype(np.float32), np.argsort(order)[:240]
