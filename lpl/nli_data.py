"""Sentence pairs for natural language inference: two stand-ins, and SNLI and MultiNLI of TFDS.

Labels are those of SNLI: 0 entailment, 1 neutral, 2 contradiction. Both stand-ins have as many
pairs of each, and no text is in two parts.

- BBC pairs: real text, labels by construction. The premise is the opening of an article, the
  hypothesis its own headline (0), that of another article of its class (1), of another class (2).
- Synthetic NLI: a sentence of the BBC and an edit of it (`nli_edits.py`): a modifier dropped (0),
  or negated (2; in every second pair the negated one is the premise); or the premise of one pair
  with the hypothesis of another (1), so that hypotheses of 1 are edited as the others are. Its
  mismatched test, from another genre, is made of Rotten Tomatoes.
"""

import importlib.util
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow_datasets as tfds
from jaxtyping import Float, Int
from ml_collections import ConfigDict
from tqdm import tqdm

from common import cli
from common.data import bbc, encoders, reviews
from common.data.words import prepare, whole
from common.errors import UserError
from lpl import nli_edits

LABELS = ("entailment", "neutral", "contradiction")
SENTENCE_END = re.compile(r"(?<=[a-z0-9)][.!?]) (?=[A-Z])")
WORDS = (6, 30)  # of a sentence that is edited


class Pairs(NamedTuple):
    """Sentence pairs and the index of each one's label in `LABELS`."""

    premises: list[str]
    hypotheses: list[str]
    labels: Int[np.ndarray, " n"]

    def take(self, rows: Int[np.ndarray, " k"]) -> "Pairs":
        """Some of them."""
        texts = ([part[row] for row in rows] for part in self[:2])
        return Pairs(*texts, self.labels[rows])


class Corpus(NamedTuple):
    """A set's parts; `tests` has matched and mismatched ones, or one called test."""

    title: str
    train: Pairs
    validation: Pairs
    tests: dict[str, Pairs]
    standin: bool


class Part(NamedTuple):
    """Pairs as rows of a table of vectors."""

    premises: Int[np.ndarray, " n"]
    hypotheses: Int[np.ndarray, " n"]
    labels: Int[np.ndarray, " n"]


def load(name: str, config: ConfigDict, cache: Path) -> Corpus:
    """Reads or makes a set; the same pairs in every run.

    Args:
      name: one of `CORPORA`.
      config: with max_train, max_validation, max_test: the most pairs of each part.
      cache: the cache directory.

    Raises:
      UserError: an unknown name, parts that do not fit, a set that TFDS has not prepared or that is
        damaged, or a download that failed.
    """
    make = cli.choose(CORPORA, name, "set of sentence pairs")
    corpus = make(config, cache)
    for part in (corpus.train, corpus.validation, *corpus.tests.values()):
        if set(part.labels) != {0, 1, 2}:
            raise UserError(
                f"A part of {corpus.title} lacks a label: raise max_train ({config.max_train}), "
                f"max_validation ({config.max_validation}) or max_test ({config.max_test})."
            )
    return corpus


def encode(
    corpus: Corpus, config: ConfigDict, cache: Path
) -> tuple[Float[np.ndarray, "m d"], dict[str, Part]]:
    """Vectors of all texts of a set, and its parts as rows of them.

    Args:
      corpus: the set.
      config: with encoder, max_pieces and smoothing.
      cache: where encodings are kept.

    Returns:
      Unit rows, one a text, and the parts by name: train, validation and those of the tests.

    Raises:
      UserError: an unknown encoder, a folder of one that can't be read, or a download that failed.
    """
    parts = {"train": corpus.train, "validation": corpus.validation} | corpus.tests
    texts = dict.fromkeys(text for part in parts.values() for group in part[:2] for text in group)
    table = encoders.encode(
        config.encoder,
        list(texts),
        cache,
        max_pieces=config.max_pieces,
        smoothing=config.smoothing,
    )
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    row_of = {text: row for row, text in enumerate(texts)}
    rows = {
        name: Part(*(np.array([row_of[text] for text in group]) for group in part[:2]), part.labels)
        for name, part in parts.items()
    }
    return table, rows


def _bbc_pairs(config: ConfigDict, cache: Path) -> Corpus:
    articles = bbc.load(cache)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(articles.labels))
    parts = [_article_pairs(articles, rows, rng) for rows in _split(order, config)]
    return Corpus("BBC pairs", *parts[:2], {"test": parts[2]}, standin=True)


def _article_pairs(articles: bbc.Articles, rows: Int[np.ndarray, " n"], rng) -> Pairs:
    """Three pairs an article, all of whose texts are those of `rows`."""
    classes = articles.labels[rows]
    found = []
    for row, label in zip(rows, classes, strict=True):
        others = rows[(classes == label) & (rows != row)], rows[classes != label]
        if not all(map(len, others)):
            continue
        headlines = row, *(rng.choice(group) for group in others)
        opening = bbc.opening(articles.bodies[row])
        found += [(opening, articles.headlines[i], j) for j, i in enumerate(headlines)]
    return _pairs(found)


def _synthetic(config: ConfigDict, cache: Path) -> Corpus:
    rng = np.random.default_rng(0)
    articles = bbc.load(cache)
    order = rng.permutation(len(articles.bodies))
    matched, seen = [], set()
    # By article: sentences of one tell of the same things.
    bounds = np.linspace(0, len(order), 11).astype(int)
    for first, last, most in ((0, 7, "train"), (7, 8, "validation"), (8, 10, "test")):
        rows = order[bounds[first] : bounds[last]]
        lines = [line for row in rows for line in articles.bodies[row].split("\n")]
        sentences = [text for line in lines for text in SENTENCE_END.split(line)]
        new = [text for text in dict.fromkeys(sentences) if text not in seen]
        seen |= set(new)
        matched.append(_edited(new, config[f"max_{most}"], rng))
    other = reviews.load("rotten_tomatoes", cache).texts
    mismatched = _edited([other[i] for i in rng.permutation(len(other))], config.max_test, rng)
    tests = {"matched": matched[2], "mismatched": mismatched}
    return Corpus("synthetic NLI", *matched[:2], tests, standin=True)


def _edited(sentences: list[str], most: int, rng) -> Pairs:
    """As many pairs of each label as there can be, up to `most` in all."""
    wanted = most // 3
    entailed, negated = [], []
    for i in rng.permutation(len(sentences)):
        text = sentences[i]
        if min(len(entailed), len(negated)) >= wanted:
            break
        if not WORDS[0] <= len(text.split()) <= WORDS[1]:
            continue
        if shorter := nli_edits.drop_modifier(text):
            entailed.append((text, shorter, 0))
        elif other := nli_edits.negate(text):  # where both edits apply, it serves the rarer one
            negated.append((text, other, 2))
    count = min(len(entailed), len(negated), wanted)
    entailed, negated = entailed[:count], negated[:count]
    negated = [(b, a, label) if i % 2 else (a, b, label) for i, (a, b, label) in enumerate(negated)]
    both = entailed + negated
    # One step round a random order: never a pair's own hypothesis.
    ring = rng.permutation(len(both))
    unrelated = [(both[i][0], both[j][1], 1) for i, j in zip(ring, np.roll(ring, 1), strict=True)]
    return _pairs(both + unrelated[:count])


def _pairs(found: list[tuple[str, str, int]]) -> Pairs:
    premises, hypotheses, labels = zip(*found, strict=True) if found else ((), (), ())
    return Pairs(list(premises), list(hypotheses), np.array(labels, np.int32))


def _split(order: Int[np.ndarray, " n"], config: ConfigDict) -> list[Int[np.ndarray, " k"]]:
    """Training, validation and test rows, each for three pairs."""
    counts = [most // 3 for most in (config.max_validation, config.max_test, config.max_train)]
    validation, test, train = np.split(order, np.cumsum(counts))[:3]
    return [train, validation, test]


def _snli(config: ConfigDict, cache: Path) -> Corpus:
    builder = _catalogue("snli", cache)
    train, validation, test = (
        _read(builder, split, config[f"max_{split}"])[0]
        for split in ("train", "validation", "test")
    )
    return Corpus("SNLI", train, validation, {"test": test}, standin=False)


def _multi_nli(config: ConfigDict, cache: Path) -> Corpus:
    """Its labelled tests are its two validation splits; ours is cut from the training part."""
    builder = _catalogue("multi_nli", cache)
    train, validation = _read(builder, "train", config.max_train, config.max_validation)
    tests = {
        name: _read(builder, f"validation_{name}", config.max_test)[0]
        for name in ("matched", "mismatched")
    }
    return Corpus("MultiNLI", train, validation, tests, standin=False)


def _catalogue(name: str, cache: Path) -> tfds.core.DatasetBuilder:
    """A set of the TFDS catalogue, part of which TFDS does not even list without TensorFlow."""
    folder = cache / "tfds" / name
    if not folder.exists() and importlib.util.find_spec("tensorflow") is None:
        raise UserError(
            f"TFDS prepares '{name}' with TensorFlow, once: pip install tensorflow, or lay the "
            f"set, prepared with file_format='array_record', into {folder}."
        )
    with whole(name, folder):
        builder = tfds.builder(name, data_dir=cache / "tfds", file_format="array_record")
    if not Path(builder.data_dir).exists():
        prepare(builder, cache)
    return builder


def _read(builder: tfds.core.DatasetBuilder, split: str, *most: int) -> list[Pairs]:
    """Disjoint random pairs of a split, at most so many; pairs without a label (-1) are dropped."""
    with whole(builder.name, builder.data_dir):
        source = builder.as_data_source(split=split)
    order = np.random.default_rng(0).permutation(len(source))
    found = []
    for rows in np.split(order, np.cumsum(most))[: len(most)]:
        bar = tqdm(rows.tolist(), desc=f"reading {builder.name} {split}", unit="pair", delay=2)
        with whole(builder.name, builder.data_dir):
            examples = [source[row] for row in bar]
        known = [
            (example["premise"].decode(), example["hypothesis"].decode(), int(example["label"]))
            for example in examples
            if example["label"] >= 0
        ]
        found.append(_pairs(known))
    return found


CORPORA = {
    "bbc_pairs": _bbc_pairs,
    "synthetic": _synthetic,
    "snli": _snli,
    "multi_nli": _multi_nli,
}
