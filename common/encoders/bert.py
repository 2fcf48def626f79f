"""BERT and MPNet sentence encoders in Flax, with weights read from Hugging Face's files.

BERT (Devlin et al. 2019, https://aclanthology.org/N19-1423) is a transformer encoder with layer
normalisation after each residual connection. MPNet (Song et al. 2020,
https://arxiv.org/abs/2004.09297) is the same without token types, with positions that are counted
from 2, and with a bias for each relative position, which all layers add to their attention scores.
Sentence vectors are the masked mean of the last layer's token vectors, or the vector of the first
token (Reimers and Gurevych 2019).

Several texts share a row of tokens (packing.py), in which tokens attend to those of their own text.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
import tokenizers
from absl import logging
from flax import nnx
from jaxtyping import Array, Bool, Float, Int
from tqdm import tqdm

from common.encoders import packing
from common.encoders.weights import LEAVES, with_weights
from common.errors import UserError

BERT_NAMES = LEAVES | {  # name here -> name in the checkpoint, where they differ
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
}
MPNET_NAMES = BERT_NAMES | {
    "query": "attention.attn.q",
    "key": "attention.attn.k",
    "value": "attention.attn.v",
    "attention_output": "attention.attn.o",
    "attention_norm": "attention.LayerNorm",
    "relative_positions": "encoder.relative_attention_bias",
}
PARAMETER_NAMES = {"bert": BERT_NAMES, "mpnet": MPNET_NAMES}  # by config.json's model_type

FILES = ("config.json", "model.safetensors", "tokenizer.json")
# Written by sentence-transformers: the modules, the pooling, the maximum length of a text. Releases
# from 2026 on leave the length to the tokenizer's file.
OPTIONAL_FILES = (
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "tokenizer_config.json",
)
# What is implemented: another value of config.json, for instance, would give wrong vectors.
BUCKETS = 32  # of relative positions
REQUIRED = {
    "model_type": tuple(PARAMETER_NAMES),
    "hidden_act": ("gelu",),
    "position_embedding_type": ("absolute",),
    "relative_attention_num_buckets": (BUCKETS,),
}
MODULES = {"Transformer", "Pooling", "Normalize"}
POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
MAX_LENGTH = 256  # of a text in tokens, if the files do not state it; MiniLM's value


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

    def __call__(
        self,
        x: Float[Array, "b l d"],
        mask: Bool[Array, "b 1 l l"],
        bias: Float[Array, "1 h l l"] | None,
    ) -> Float[Array, "b l d"]:
        q, k, v = (
            layer(x).reshape(*x.shape[:2], self.heads, -1)
            for layer in (self.query, self.key, self.value)
        )
        attended = jax.nn.dot_product_attention(q, k, v, bias, mask=mask)
        x = self.attention_norm(x + self.attention_output(attended.reshape(x.shape)))
        return self.output_norm(x + self.down(jax.nn.gelu(self.up(x), approximate=False)))


class Bert(nnx.Module):
    """Maps token ids to contextual token vectors: a BERT, or an MPNet where the config says so."""

    def __init__(self, config: dict, rngs: nnx.Rngs):
        width, heads = config["hidden_size"], config["num_attention_heads"]
        mpnet = config.get("model_type") == "mpnet"
        self.words = nnx.Embed(config["vocab_size"], width, rngs=rngs)
        self.positions = nnx.Embed(config["max_position_embeddings"], width, rngs=rngs)
        self.first_position = 2 if mpnet else 0
        self.token_types = None if mpnet else nnx.Embed(config["type_vocab_size"], width, rngs=rngs)
        self.relative_positions = nnx.Embed(BUCKETS, heads, rngs=rngs) if mpnet else None
        self.embedding_norm = nnx.LayerNorm(width, epsilon=config["layer_norm_eps"], rngs=rngs)
        self.layers = nnx.List([Layer(config, rngs) for _ in range(config["num_hidden_layers"])])

    @property
    def max_length(self) -> int:
        """The number of tokens, special ones included, of the longest text."""
        return self.positions.num_embeddings - self.first_position

    def __call__(
        self, ids: Int[Array, "b l"], texts: Int[Array, "b l"], positions: Int[Array, "b l"]
    ) -> Float[Array, "b l d"]:
        """The last layer's token vectors; tokens attend to those of the same text in their row.

        Positions are of tokens in their text, in order and side by side.
        """
        x = self.words(ids) + self.positions(positions + self.first_position)
        if self.token_types is not None:
            x = x + self.token_types.embedding[0]
        bias = None
        if self.relative_positions is not None:
            bias = self.relative_positions.embedding[relative_buckets(ids.shape[1])]
            bias = bias.transpose(2, 0, 1)[None]  # heads first
        mask = (texts[:, :, None] == texts[:, None, :])[:, None]  # for all heads
        x = self.embedding_norm(x)
        for layer in self.layers:
            x = layer(x, mask, bias)
        return x


def relative_buckets(length: int) -> Int[np.ndarray, "l l"]:
    """The buckets of relative positions of all tokens (columns) as each token (row) sees them.

    As in T5 (Raffel et al. 2020, https://arxiv.org/abs/1910.10683): half are for tokens after a
    token; distances 0 ... 7 have one each, n >= 8 has min(15, 8 + floor(8 log(n / 8) / log 16)).
    """
    place = np.arange(length)
    distance = np.abs(place - place[:, None])
    # log 16 = 4 log 2: the logarithm of a square has its steps at powers of two, without rounding.
    far = np.minimum(8 + np.floor(np.log2(np.maximum(distance, 8) ** 2 / 64)).astype(int), 15)
    return np.where(distance < 8, distance, far) + np.where(place > place[:, None], BUCKETS // 2, 0)


class SentenceEncoder(NamedTuple):
    """A network that maps texts to vectors, and its tokenizer; texts are cut after `max_length`.

    `pooling` is 'mean' of the token vectors; 'cls', the vector of the first token; or 'head', what
    the network's method of this name makes of their sum and of the number of tokens.
    """

    network: Any
    tokenizer: tokenizers.Tokenizer
    pooling: str
    max_length: int


def load(files: Mapping[str, bytes], name: str) -> SentenceEncoder:
    """Builds a sentence encoder from the content of `FILES` and of `OPTIONAL_FILES`, if any.

    UserError: they are damaged, or of another network, module or pooling than is implemented.
    """
    try:
        config = json.loads(files["config.json"])
        tokenizer = tokenizers.Tokenizer.from_str(files["tokenizer.json"].decode())
        optional = (json.loads(files.get(part, "{}")) for part in OPTIONAL_FILES)
        modules, pooling, transformer, tokenizer_config = optional
        # Older folders have one flag for each mode, newer ones the name of the mode.
        flags = [key for key in pooling if key.startswith("pooling_mode_") and pooling[key]]
        mode = str(pooling.get("pooling_mode", " and ".join(flags) or "mean"))
        mode = POOLINGS.get(mode, mode)
        if not (
            all(config.get(key) in (None, *values) for key, values in REQUIRED.items())
            and {module["type"].split(".")[-1] for module in modules} <= MODULES
            and mode in POOLINGS.values()
        ):
            raise ValueError(
                f"only {REQUIRED}, the modules {sorted(MODULES)} and the poolings mean and cls are "
                "implemented"
            )
        model = network(config, safetensors.numpy.load(files["model.safetensors"]))
        max_length = transformer.get("max_seq_length") or tokenizer_config.get("model_max_length")
        max_length = min(int(max_length or MAX_LENGTH), model.max_length)
        if max_length < 3:  # two of them are special tokens
            raise ValueError(f"it takes texts of {max_length} word pieces")
    except Exception as error:  # json, safetensors and tokenizers raise many types
        raise UserError(
            f"The encoder in {name} cannot be read ({error}): it has to be a BERT or an MPNet in "
            "Hugging Face's format."
        ) from error
    tokenizer.no_padding()  # MiniLM's file pads every text to 128 tokens
    return SentenceEncoder(model, tokenizer, mode, max_length)


def network(config: dict, weights: Mapping[str, np.ndarray]) -> Bert:
    """Returns the network of a configuration, with weights by the names of its checkpoints."""
    kind = config.get("model_type") or "bert"
    weights = {name.removeprefix(f"{kind}."): value for name, value in weights.items()}
    layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layer.")}
    if config["num_hidden_layers"] != len(layers):
        raise ValueError(f"model.safetensors has {len(layers)} layers, config.json another number")

    def build():
        model = Bert(config, nnx.Rngs(0))
        model(*jnp.zeros((3, 1, 1), int))  # e.g. heads must divide the width
        return model

    return with_weights(build, weights, PARAMETER_NAMES[kind])


def encode(
    encoder: SentenceEncoder,
    texts: Sequence[str],
    *,
    max_length: int | None = None,
    bar: tqdm | None = None,
) -> Float[np.ndarray, "n d"]:
    """Encodes texts as float32 unit rows, pooled from the last layer's token vectors.

    A batch has 512 tokens on a CPU, whose caches hold what a layer makes of them, and 16,384 on an
    accelerator. A text is cut after `max_length` tokens, None: the encoder's; the bar advances.
    UserError: no texts, too large a max_length, or a token id without a vector.
    """
    model, max_length = encoder.network, max_length or encoder.max_length
    if not 3 <= max_length <= model.max_length:  # two of them are special tokens
        raise UserError(
            f"Texts of {max_length} word pieces: the encoder takes 3 to {model.max_length}."
        )
    encoder.tokenizer.enable_truncation(max_length)
    ids = [encoding.ids for encoding in encoder.tokenizer.encode_batch(as_list(texts))]
    highest = max((max(i, default=0) for i in ids), default=0)
    if highest >= model.words.num_embeddings:  # indexing would give NaN
        raise UserError(
            f"tokenizer.json has a token id {highest}, model.safetensors "
            f"{model.words.num_embeddings} token vectors: take both from one model."
        )
    out = np.empty((len(texts), model.words.features), np.float32)
    graph, state = nnx.split(model)
    batch_tokens = 512 if jax.default_backend() == "cpu" else 16_384
    # By default accelerators round the factors of matrix products, each in a different way.
    with jax.default_matmul_precision("float32"):
        for batch in packing.batches(ids, batch_tokens):
            vectors = _step(graph, state, batch.ids, batch.texts, batch.positions, encoder.pooling)
            out[batch.numbers] = np.asarray(vectors)[batch.places]
            if bar is not None:
                bar.update(len(batch.numbers))
    return out


def as_list(texts: Sequence[object]) -> list[str]:
    """The texts; UserError for one text alone, whose letters would be texts, and other things."""
    listed = [text for text in texts if isinstance(text, str)]
    if isinstance(texts, str) or len(listed) < len(texts):
        wrong = next((text for text in texts if not isinstance(text, str)), texts)
        raise UserError(f"There is {wrong!r} where texts are expected: give a list of texts.")
    return listed


def warn_of_cut(tokenizer: tokenizers.Tokenizer, texts: Sequence[str], max_length: int) -> None:
    """Says how many texts are longer than a number of tokens, if any are."""
    tokenizer.enable_truncation(max_length)
    # A token is at least a byte, and two are special.
    long = [text for text in texts if len(text.encode()) + 2 > max_length]
    cut = sum(1 for encoding in tokenizer.encode_batch(long) if encoding.overflowing)
    if cut:
        about = cut, len(texts), max_length
        logging.warning("%d of %d texts are longer than %d word pieces and are cut.", *about)


@partial(jax.jit, static_argnames=("graph", "pooling"))
def _step(graph, state, ids, texts, positions, pooling):
    """The unit vectors of all texts of each row, by their numbers in it."""
    model = nnx.merge(graph, state)
    hidden = model(ids, texts, positions)
    numbers = jnp.arange(ids.shape[1] // packing.MIN_TOKENS)
    own = texts[:, None] == numbers[:, None]  # [rows, texts, tokens]
    if pooling == "cls":
        own &= positions[:, None] == 0
    # The sum has the direction of the mean.
    pooled = jnp.einsum("rtl,rld->rtd", own.astype(hidden.dtype), hidden)
    if pooling == "head":
        pooled = model.head(pooled, own.sum(-1, keepdims=True, dtype=hidden.dtype))
    return pooled / jnp.maximum(jnp.linalg.norm(pooled, axis=-1, keepdims=True), 1e-12)
