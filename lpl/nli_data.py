"""Sentence pairs for natural language inference: proxy data sets, SNLI and MultiNLI.

Labels are those of SNLI: 0 entailment, 1 neutral, 2 contradiction. The proxy sets have equally
many pairs of each label, and their parts share no text.

- BBC pairs: real text, labelled by construction. The premise is the opening of an article; the
  hypothesis is its own headline (0), that of another article of its class (1) or of another class
  (2). BBC passages: the same for each of the first paragraphs of an article.
- Synthetic NLI: sentences of the BBC and edits of them (synthetic_nli.py). The mismatched test
  part, of another genre, is made from Rotten Tomatoes reviews. Synthetic NLI of reviews: the same
  of IMDB reviews, with a mismatched part from the BBC.
"""

import dataclasses
import importlib.util
import re
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow_datasets as tfds
from jaxtyping import Float, Int

from common.data.builders import explain_damage, prepare
from common.data.sets import bbc, reviews
from common.encoders import texts as text_encoders
from common.errors import UserError, check_choice
from common.linear import unit
from common.progress import progress_bar
from lpl import synthetic_nli
from lpl.nli import EncodedPairs

SPLITS = ("test", "validation")
SENTENCE_END = re.compile(r"(?<=[a-z0-9)][.!?]) (?=[A-Z])")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """The most pairs of each part of a corpus."""

    max_train: int
    max_validation: int
    max_test: int


class SentencePairs(NamedTuple):
    """Sentence pairs, and the index of each pair's label in `nli.LABELS`."""

    premises: list[str]
    hypotheses: list[str]
    labels: Int[np.ndarray, " n"]


class Corpus(NamedTuple):
    """The parts of a data set; `tests` has a matched and a mismatched part, or one called test."""

    title: str
    train: SentencePairs
    validation: SentencePairs
    tests: dict[str, SentencePairs]
    proxy: bool

    def parts(self) -> dict[str, SentencePairs]:
        """All parts by name."""
        return {"train": self.train, "validation": self.validation} | self.tests

    def judged(self, split: str) -> dict[str, SentencePairs]:
        """The parts by which methods are judged: tests or validation; UserError: another split."""
        check_choice("split", split, SPLITS)
        return self.tests if split == "test" else {"validation": self.validation}


def load(name: str, limits: Limits, cache: Path) -> Corpus:
    """Reads or makes the data set of this name in `CORPORA`; the same pairs in every run.

    UserError: an unknown name, a set that TFDS has not prepared or is damaged, a failed download.
    """
    check_choice("set of sentence pairs", name, CORPORA)
    return CORPORA[name](limits, cache)


def encode(
    corpus: Corpus, encoder: str, cache: Path, *, max_pieces: int, smoothing: float
) -> tuple[Float[np.ndarray, "m d"], dict[str, EncodedPairs]]:
    """Unit vectors of all texts of a data set, and its parts as rows of them by name.

    Encoder, word pieces and smoothing are those of `text_encoders.encode`, which raises UserError.
    """
    parts = corpus.parts()
    texts = dict.fromkeys(text for part in parts.values() for group in part[:2] for text in group)
    vectors = text_encoders.encode(
        encoder, list(texts), cache, max_pieces=max_pieces, smoothing=smoothing
    )
    row_of = {text: row for row, text in enumerate(texts)}
    encoded = {}
    for name, part in parts.items():
        premises, hypotheses = (np.array([row_of[text] for text in group]) for group in part[:2])
        encoded[name] = EncodedPairs(premises, hypotheses, part.labels)
    return unit(vectors), encoded


def _bbc_pairs(limits: Limits, cache: Path, title: str = "BBC pairs", passages: int = 1) -> Corpus:
    """Three pairs for each of the first `passages` paragraphs of each article."""
    articles, most = bbc.load(cache), 3 * passages
    rng = np.random.default_rng(0)
    order = rng.permutation(len(articles.labels))
    counts = [limit // most for limit in (limits.max_validation, limits.max_test, limits.max_train)]
    validation, test, train = np.split(order, np.cumsum(counts))[:3]
    parts = [_article_pairs(articles, rows, rng, passages) for rows in (train, validation, test)]
    return Corpus(title, parts[0], parts[1], {"test": parts[2]}, proxy=True)


def _article_pairs(
    articles: bbc.Articles, rows: Int[np.ndarray, " n"], rng, passages: int
) -> SentencePairs:
    """The pairs of the articles `rows`, with texts of these alone."""
    classes = articles.labels[rows]
    pairs = []
    for row, label in zip(rows, classes, strict=True):
        others = rows[(classes == label) & (rows != row)], rows[classes != label]
        if not all(map(len, others)):
            continue
        for passage in articles.bodies[row].split("\n")[:passages]:
            headlines = row, *(rng.choice(group) for group in others)
            pairs += [(passage, articles.headlines[i], j) for j, i in enumerate(headlines)]
    return _sentence_pairs(pairs)


def _synthetic_news(limits: Limits, cache: Path) -> Corpus:
    short = reviews.load("rotten_tomatoes", cache).texts
    return _synthetic("synthetic NLI", bbc.load(cache).bodies, short, limits)


def _synthetic_reviews(limits: Limits, cache: Path) -> Corpus:
    long, short = reviews.load("imdb", cache).texts, _sentences(bbc.load(cache).bodies)
    return _synthetic("synthetic NLI of reviews", long, short, limits)


def _synthetic(title: str, long: list[str], short: list[str], limits: Limits) -> Corpus:
    """Edited sentences of the long texts, and as the mismatched part edits of the short ones."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(long))
    matched, used = [], set()
    # Parts are split by text, since the sentences of a text are about the same things.
    bounds = np.linspace(0, len(order), 11).astype(int)
    splits = ((0, 7, limits.max_train), (7, 8, limits.max_validation), (8, 10, limits.max_test))
    for first, last, limit in splits:
        sentences = _sentences([long[row] for row in order[bounds[first] : bounds[last]]])
        new = [text for text in dict.fromkeys(sentences) if text not in used]
        used |= set(new)
        matched.append(_sentence_pairs(synthetic_nli.edited_pairs(new, limit, rng)))
    short = [short[i] for i in rng.permutation(len(short))]
    mismatched = _sentence_pairs(synthetic_nli.edited_pairs(short, limits.max_test, rng))
    tests = {"matched": matched[2], "mismatched": mismatched}
    return Corpus(title, matched[0], matched[1], tests, proxy=True)


def _sentences(texts: list[str]) -> list[str]:
    lines = [line for text in texts for line in text.split("\n")]
    return [sentence for line in lines for sentence in SENTENCE_END.split(line)]


def _sentence_pairs(pairs: list[tuple[str, str, int]]) -> SentencePairs:
    if not pairs:
        raise UserError(
            "One part of the sentence pairs is empty: raise max_train, max_validation or max_test."
        )
    premises, hypotheses, labels = zip(*pairs, strict=True)
    return SentencePairs(list(premises), list(hypotheses), np.array(labels, np.int32))


def _snli(limits: Limits, cache: Path) -> Corpus:
    builder, sizes = _tfds_builder("snli", cache), dataclasses.asdict(limits)
    names = "train", "validation", "test"
    train, validation, test = (_read_split(builder, n, sizes[f"max_{n}"])[0] for n in names)
    return Corpus("SNLI", train, validation, {"test": test}, proxy=False)


def _multi_nli(limits: Limits, cache: Path) -> Corpus:
    """Its two validation splits are the tests that have labels; validation is taken from train."""
    read = partial(_read_split, _tfds_builder("multi_nli", cache))
    train, validation = read("train", limits.max_train, limits.max_validation)
    names = "matched", "mismatched"
    tests = {name: read(f"validation_{name}", limits.max_test)[0] for name in names}
    return Corpus("MultiNLI", train, validation, tests, proxy=False)


def _tfds_builder(name: str, cache: Path) -> tfds.core.DatasetBuilder:
    """A data set of the TFDS catalogue; without TensorFlow, TFDS lists only some of them."""
    folder = cache / "tfds" / name
    if not folder.exists() and importlib.util.find_spec("tensorflow") is None:
        raise UserError(
            f"TFDS prepares '{name}' with TensorFlow, once: pip install tensorflow, or copy the "
            f"data set, prepared with file_format='array_record', to {folder}."
        )
    with explain_damage(name, folder):
        builder = tfds.builder(name, data_dir=cache / "tfds", file_format="array_record")
    if not Path(builder.data_dir).exists():
        prepare(builder, cache)
    return builder


def _read_split(builder: tfds.core.DatasetBuilder, split: str, *counts: int) -> list[SentencePairs]:
    """Disjoint random samples of a split of at most these sizes; unlabelled pairs are dropped."""
    samples = []
    with explain_damage(builder.name, builder.data_dir):
        # A decorator of TFDS hides the arguments.
        source = builder.as_data_source(split=split)  # pyright: ignore[reportCallIssue]
        order = np.random.default_rng(0).permutation(len(source))
        for rows in np.split(order, np.cumsum(counts))[: len(counts)]:
            bar = progress_bar(
                rows.tolist(), desc=f"reading {builder.name} {split}", unit="pair", delay=2
            )
            examples = [source[row] for row in bar]
            known = [
                (example["premise"].decode(), example["hypothesis"].decode(), int(example["label"]))
                for example in examples
                if example["label"] >= 0  # -1: the annotators did not agree
            ]
            samples.append(_sentence_pairs(known))
    return samples


CORPORA = {
    "bbc_pairs": _bbc_pairs,
    "bbc_passages": partial(_bbc_pairs, title="BBC passages", passages=8),
    "synthetic": _synthetic_news,
    "synthetic_reviews": _synthetic_reviews,
    "snli": _snli,
    "multi_nli": _multi_nli,
}
