"""Sentence encoders against sentence-transformers, on sentences of reviews and news."""

import tempfile
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from benchmarks.harness import Benchmark, Case, Implementation, Work, cores, torch_device
from common.data.packages import cache_dir
from common.encoders import bert
from common.encoders import texts as text_encoders
from common.spaces import sentences


class Task(NamedTuple):
    """The files of an encoder, and texts."""

    files: dict[str, bytes]
    texts: list[str]


def load(name: str, num_texts: int) -> Task:
    """The first sentences, which have 25 word pieces on average."""
    texts = sentences.load_texts(cache_dir()).texts[:num_texts]
    return Task(text_encoders.read_files(name, cache_dir()), texts)


def work(task: Task) -> Work:
    """For a token, two operations a weight of the layers; for a text of l tokens, 4 l^2 d a layer.

    Bytes: all weights of the layers and the vectors of texts once.
    """
    encoder = bert.load(task.files, "it")
    layers = encoder.network.layers
    weights = sum(leaf.size for leaf in jax.tree.leaves(layers))
    encoder.tokenizer.enable_truncation(sentences.MAX_PIECES)
    lengths = np.array(
        [len(encoding.ids) for encoding in encoder.tokenizer.encode_batch(task.texts)]
    )
    width = encoder.network.words.features
    flops = 2.0 * weights * lengths.sum() + 4.0 * len(layers) * width * (lengths**2).sum()
    return Work(flops, 4.0 * (weights + len(lengths) * width), len(lengths))


def _ours(task):
    encoder = bert.load(task.files, "it")
    return lambda: bert.encode(encoder, task.texts, max_length=sentences.MAX_PIECES)


def _sentence_transformers(task):
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(cores())
    with tempfile.TemporaryDirectory() as folder:
        for name, content in task.files.items():
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        encoder = SentenceTransformer(folder, device=torch_device())
    encoder.max_seq_length = sentences.MAX_PIECES
    return lambda: encoder.encode(task.texts, normalize_embeddings=True, show_progress_bar=False)


def score(task: Task, vectors: np.ndarray) -> dict[str, float]:
    """The mean cosine of a sentence and the next one, by which the vectors can be compared."""
    return {"mean cosine": float(np.mean(np.sum(vectors[1:] * vectors[:-1], axis=1)))}


def case(name: str, num_texts: int, **options) -> Case:
    """A case of one encoder."""
    title = f"{name}-{num_texts}"
    return Case(title, num_texts, lambda: load(name, num_texts), work, name, **options)


BENCHMARK = Benchmark(
    title="Sentences to vectors",
    goal=">= 1",
    note=(
        "The tokenizer's time counts. FLOPs: those of the layers' products for the tokens that the "
        "texts have, without padding. Ours puts several texts into a row; "
        "sentence-transformers sorts texts by length, in batches of 32."
    ),
    cases=(
        case("minilm", 512, memory=True),
        case("mpnet", 512, rounds=3, memory=True),
    ),
    quick=case("minilm", 32),
    implementations={
        "isthmus": Implementation(_ours),
        "sentence-transformers": Implementation(
            _sentence_transformers, requires=("torch", "sentence_transformers")
        ),
    },
    score=score,
    axis="texts",
    unit="texts/s",
)
