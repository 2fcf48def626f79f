"""Embeddings by name: trained once into the cache directory, or pretrained."""

import dataclasses
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from common import cbow
from common.data import array_cache
from common.data.sets import corpus, reviews
from common.data.sets.corpus import Corpus
from common.errors import UserError, check_choice, check_count
from common.linear import unit
from common.run import train
from common.run.workdir import Workdir
from common.spaces import paired_spaces
from embed_match import glove, lstm

VERSION = 2  # of the trained embeddings: increase it when a change of the code changes them


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    """An embedding to be trained."""

    kind: str  # a key of `KINDS`
    settings: cbow.Settings | glove.Settings | lstm.Settings
    random_seed: int  # of the initialisation and of all random samples
    init_from: str | None = None  # name of the model that the kind `lstm` fine-tunes


class Text(NamedTuple):
    """The labelled texts that embeddings are trained on."""

    corpus: Corpus
    gap: int  # number of empty positions between two texts
    labels: Int[np.ndarray, " t"]
    training: Bool[np.ndarray, " t"]  # whether a label may be used in training; else a test text


class Embedding(NamedTuple):
    """Vectors of the vocabulary of a text."""

    vectors: Float[np.ndarray, "V d"]  # zero rows for words that the embedding lacks
    known: Bool[np.ndarray, " V"]  # whether the embedding has the word
    words_per_second: float  # in training, compilation included; NaN if not measured


class RandomRuns(NamedTuple):
    """The embeddings of all random runs."""

    models: dict[str, Model]  # those that are trained, as in the first of all random runs
    text: Text  # that they are trained on, whose vocabulary is embedded
    spaces: dict[int, dict[str, Embedding]]  # random seed -> embeddings by name


def in_common(
    spaces: Mapping[str, Embedding], source: str, target: str, ranks: str = ""
) -> tuple[Float[np.ndarray, "n d_s"], Float[np.ndarray, "n d_t"]]:
    """Vectors of the words that two embeddings share, of all or of some ranks, such as 1-5000."""
    x, y = spaces[source], spaces[target]
    first, last = map(int, ranks.split("-")) if ranks else (1, len(x.known))
    position = np.arange(1, len(x.known) + 1)
    rows = x.known & y.known & (first <= position) & (position <= last)
    return x.vectors[rows], y.vectors[rows]


def read(
    dataset: str, num_texts: int, num_words: int, models: Mapping[str, Model], cache: Path
) -> Text:
    """Tokenises texts, once into the cache directory; the first half are the training texts.

    They are those of `common.data.sets.reviews`, negative and positive ones in turn, with the most
    frequent words. No window of the `models` reaches from one text into the next. UserError: an
    unknown dataset, or texts of fewer than two words.
    """
    gap = max(getattr(model.settings, "window", 1) for model in models.values())

    def compute():
        texts, labels = reviews.load(dataset, cache).interleaved()
        check_count("num_texts", num_texts, len(texts), f"texts of {dataset}", least=2)
        built = corpus.build(texts[:num_texts], num_words=num_words, gap=gap)
        return built._asdict() | {"labels": labels[:num_texts]}

    recipe = [VERSION, Corpus._fields, dataset, num_texts, num_words, gap]
    stored = array_cache.load_or_compute(cache / "corpora", dataset, recipe, compute)
    labels = stored.pop("labels")
    words = stored.pop("words").tolist()
    built = Corpus(words=words, **stored)
    return Text(built, gap, labels, np.arange(len(labels)) < len(labels) // 2)


def load(
    names: Iterable[str], models: Mapping[str, Model], text: Text, work: Workdir, cache: Path
) -> dict[str, Embedding]:
    """Loads embeddings by name, training those that are not in the cache directory.

    Names are those of `models`, or of pretrained spaces (`common.spaces.paired_spaces`). UserError:
    an unknown name.
    """
    spaces, names = {}, dict.fromkeys(names)
    for name in names:  # before the first one is trained
        check_choice("embedding", name, [*models, *paired_spaces.SPACES])
    for name in names:
        if name in models:
            spaces[name] = _trained(name, models, text, work, cache)
        else:
            spaces[name] = _pretrained(name, text, cache)
    return spaces


def _pretrained(name: str, text: Text, cache: Path) -> Embedding:
    """The rows of a pretrained space that belong to words of the text."""
    space = paired_spaces.load_space(name, cache)
    row_of = {word: row for row, word in enumerate(space.words)}
    rows = np.array([row_of.get(word, -1) for word in text.corpus.words])
    known = rows >= 0
    if not known.any():
        raise UserError(f"The space '{name}' has no word of the texts: choose a space of words.")
    return Embedding(np.where(known[:, None], space.vectors[rows], 0), known, np.nan)


def _trained(
    name: str, models: Mapping[str, Model], text: Text, work: Workdir, cache: Path
) -> Embedding:
    """The embedding of a model, from the cache directory or trained into it."""
    model, initial = models[name], None
    part = f"train-{name}-seed{model.random_seed}"
    recipe = [VERSION, dataclasses.asdict(model), array_cache.digest(text.corpus.tokens)]
    if model.kind == "lstm":
        origin = model.init_from or ""
        base = models.get(origin)
        if base is None or base.kind == "lstm":
            raise UserError(
                f"{name} can't be fine-tuned from '{model.init_from}': set "
                f"--config.models.{name}.init_from to a model of kind cbow or glove."
            )
        initial = _trained(origin, models, text, work, cache).vectors
        recipe += [dataclasses.asdict(base), array_cache.digest(text.labels, text.training)]

    def compute():
        resumed = (work.path / "checkpoints" / part).exists()
        start = time.perf_counter()
        keys = jax.random.split(jax.random.key(model.random_seed))  # of data, of initialization
        run = TRAININGS[model.kind]
        vectors, num_words = run(model.settings, keys, text, work, part, initial)
        speed = np.nan
        if not resumed:
            speed = num_words / (time.perf_counter() - start)
            work.metrics.add(f"{part}-speed", {0: {"words_per_second": speed}})
        return {"vectors": vectors, "words_per_second": np.array(speed)}

    stored = array_cache.load_or_compute(cache / "embeddings", name, recipe, compute)
    train.forget_checkpoints(work, part)
    known = np.ones(len(text.corpus.words), bool)
    return Embedding(stored["vectors"], known, float(stored["words_per_second"]))


Trained = tuple[np.ndarray, int | np.integer]  # vectors, and the number of words that were read


def _cbow(settings, keys, text: Text, work: Workdir, part: str, _) -> Trained:
    """Trains CBOW: the vectors, and the number of words that were read."""
    vectors = cbow.train(text.corpus, settings, keys, work=work, part=part)
    return vectors, settings.epochs * np.sum(text.corpus.tokens >= 0)


def _glove(settings, keys, text: Text, work: Workdir, part: str, _) -> Trained:
    """Trains GloVe, likewise."""
    num_words = len(text.corpus.words)
    state = glove.init(settings, num_words, keys[1])
    counts = glove.cooccurrence(text.corpus.tokens, num_words, settings.window)
    data = glove.data(counts, settings, keys[0])
    steps = {"num_steps": settings.steps, "chunk": 1}
    state = train.run(glove.step, state, data, settings, **steps, work=work, part=part)
    epochs = settings.steps * settings.epochs_per_step
    return np.asarray(glove.vectors(state)), epochs * np.sum(text.corpus.tokens >= 0)


def _lstm(settings, keys, text: Text, work: Workdir, part: str, initial) -> Trained:
    """Fine-tunes the vectors `initial` on the labels of the training texts, likewise."""
    index, word = corpus.text_and_word_ids(text.corpus.tokens, text.gap)
    last = lstm.last_words(index, word, len(text.labels), settings.max_length)
    training, test = (
        lstm.Data(jnp.asarray(last[rows]), jnp.asarray(text.labels[rows]), keys[0])
        for rows in (text.training, ~text.training)
    )
    state = lstm.init(settings, unit(initial) if settings.unit_norm else initial, keys[1])
    steps = {"num_steps": settings.steps, "chunk": settings.steps // 5 or 1}
    state = train.run(lstm.step, state, training, settings, **steps, work=work, part=part)
    accuracy = float(lstm.accuracy(state.parameters, test, settings))
    work.metrics.add(f"{part}-test", {0: {"accuracy": accuracy}})
    num_texts = settings.steps * settings.updates_per_step * settings.batch_size
    return np.asarray(state.parameters.table[...]), num_texts * settings.max_length


TRAININGS = {"cbow": _cbow, "glove": _glove, "lstm": _lstm}  # by the kind of a model
SETTINGS = {"cbow": cbow.Settings, "glove": glove.Settings, "lstm": lstm.Settings}
