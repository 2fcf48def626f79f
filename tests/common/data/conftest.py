import json

import jax
import numpy as np
import pytest
import safetensors.numpy
import tokenizers
from flax import nnx

from common import bert

TINY = {
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "vocab_size": 4,
    "max_position_embeddings": 20,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
}


@pytest.fixture
def folder(tmp_path):
    """A user's own model of four words."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    state = nnx.state(nnx.eval_shape(lambda: bert.Bert(TINY, nnx.Rngs(0))))
    rng = np.random.default_rng(0)
    weights = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        keys = [str(k.key) for k in path if hasattr(k, "key")]
        name = ".".join(bert.PARAMETER_NAMES.get(key, key) for key in keys)
        shape = leaf.shape[::-1] if keys[-1] == "kernel" else leaf.shape
        weights[name] = rng.normal(scale=0.5, size=shape).astype(np.float32)
    safetensors.numpy.save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(TINY))
    vocabulary = {word: i for i, word in enumerate(("?", "land", "sea", "bridge"))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
