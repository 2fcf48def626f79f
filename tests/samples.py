"""Small models in other people's file formats, for tests that read them or break them."""

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
    """A BERT of four words in Hugging Face's form: the files of its folder.

    Args:
      draw: shape -> float32 values of a parameter.
      **more: of config.json.
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


def timm_shapes(
    width: int, depth: int, patch: int, side: int, channels: int
) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the state_dict of timm's VisionTransformer, without its head."""
    shapes = {
        "cls_token": (1, 1, width),
        "pos_embed": (1, 1 + side**2, width),
        "patch_embed.proj.weight": (width, channels, patch, patch),
    }
    shapes |= dict.fromkeys(("patch_embed.proj.bias", "norm.weight", "norm.bias"), (width,))
    for i in range(depth):
        for name, out, into in (
            ("attn.qkv", 3 * width, width),
            ("attn.proj", width, width),
            ("mlp.fc1", 4 * width, width),
            ("mlp.fc2", width, 4 * width),
        ):
            shapes[f"blocks.{i}.{name}.weight"] = (out, into)
            shapes[f"blocks.{i}.{name}.bias"] = (out,)
        for name in ("norm1", "norm2"):
            shapes[f"blocks.{i}.{name}.weight"] = shapes[f"blocks.{i}.{name}.bias"] = (width,)
    return shapes
