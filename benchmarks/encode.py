"""Sentence encoders against sentence-transformers, on sentences of reviews and news."""

import tempfile
from pathlib import Path

import jax
import numpy as np

from benchmarks.harness import Case, Implementation, Work, cores, torch_device
from common.data.packages import cache_dir
from common.encoders import bert
from common.encoders import texts as text_encoders
from common.spaces import sentences


def load(name: str, num_texts: int) -> tuple[dict[str, bytes], list[str]]:
    """The files of an encoder, and the first sentences, of 25 word pieces on average."""
    texts = sentences.load_texts(cache_dir()).texts[:num_texts]
    return text_encoders.read_files(name, cache_dir()), texts


def work(task) -> Work:
    """For a token, two operations a weight of the layers; for a text of l tokens, 4 l^2 d a layer.

    Bytes: all weights of the layers and the vectors of texts once.
    """
    files, texts = task
    encoder = bert.load(files, "it")
    layers, width = encoder.network.layers, encoder.network.words.features
    weights = sum(leaf.size for leaf in jax.tree.leaves(layers))
    encoder.tokenizer.enable_truncation(sentences.MAX_PIECES)
    lengths = np.array([len(text.ids) for text in encoder.tokenizer.encode_batch(texts)])
    flops = 2.0 * weights * lengths.sum() + 4.0 * len(layers) * width * (lengths**2).sum()
    return Work(flops, 4.0 * (weights + len(lengths) * width))


def _ours(task):
    files, texts = task
    encoder = bert.load(files, "it")
    return lambda: bert.encode(encoder, texts, max_length=sentences.MAX_PIECES)


def _sentence_transformers(task):
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(cores())
    files, texts = task
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        encoder = SentenceTransformer(folder, device=torch_device())
    encoder.max_seq_length = sentences.MAX_PIECES
    return lambda: encoder.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def score(task, vectors: np.ndarray) -> dict[str, float]:
    """The mean cosine of a sentence and the next one, by which the vectors can be compared."""
    return {"mean cosine": float(np.mean(np.sum(vectors[1:] * vectors[:-1], axis=1)))}


TITLE = "Sentences to vectors"
GOAL = ">= 1"
NOTE = (
    "The tokenizer's time counts. FLOPs: those of the layers' products for the tokens that the "
    "texts have, without padding. Ours puts several texts into a row; "
    "sentence-transformers sorts texts by length, in batches of 32."
)
CASES = (
    Case("minilm-512", 512, ("minilm", 512), "minilm", memory=True),
    Case("mpnet-512", 512, ("mpnet", 512), "mpnet", rounds=3, memory=True),
)
QUICK = Case("minilm-8", 8, ("minilm", 8))
IMPLEMENTATIONS = {
    "isthmus": Implementation(_ours),
    "sentence-transformers": Implementation(
        _sentence_transformers, requires=("torch", "sentence_transformers")
    ),
}
