"""The embeddings by name: trained once into the cache directory, or pretrained."""

import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from jaxtyping import Bool, Float, Int
from ml_collections import ConfigDict

from common import cli, train
from common.data import corpus, kept, reviews, words
from common.data.corpus import Corpus
from common.errors import UserError
from common.workdir import Workdir
from embed_match import cbow, glove, lstm

VERSION = 1  # of trained embeddings: raise it when code here or in the models changes what they are


class Text(NamedTuple):
    """What the embeddings are trained on.

    Attributes:
      corpus: its words, none thinned out.
      gap: empty places between two texts.
      labels: of the texts.
      training: texts whose labels may be learned from; the others are to test.
    """

    corpus: Corpus
    gap: int
    labels: Int[np.ndarray, " t"]
    training: Bool[np.ndarray, " t"]


class Embedding(NamedTuple):
    """Vectors of the vocabulary of a text.

    Attributes:
      vectors: zero rows for words that it lacks.
      known: which words it has.
      words_per_second: read in training, compilation included; NaN where it is not known.
    """

    vectors: Float[np.ndarray, "V d"]
    known: Bool[np.ndarray, " V"]
    words_per_second: float


def read(config: ConfigDict, cache: Path) -> Text:
    """The text, tokenised once into the cache directory; the second half of the texts is to test.

    Raises:
      UserError: an unknown data set, or too little text.
    """
    cli.at_least(config, 8, "num_texts", "num_words")
    gap = max(_values(name, config).get("window", 1) for name in config.models)
    recipe = [VERSION, config.dataset, config.num_texts, config.num_words, gap]

    def compute():
        texts = reviews.load(config.dataset, cache).in_turn()
        texts = reviews.Texts(texts.texts[: config.num_texts], texts.labels[: config.num_texts])
        made = corpus.build(
            texts.texts, num_words=config.num_words, subsample=0, gap=gap, random_seed=0
        )
        return made._asdict() | {"labels": texts.labels}

    found = kept.arrays(cache / "corpora", config.dataset, recipe, compute)
    made = Corpus(found["words"].tolist(), found["share"], found["tokens"])
    labels = found["labels"]
    return Text(made, gap, labels, np.arange(len(labels)) < len(labels) // 2)


def load(
    config: ConfigDict, text: Text, work: Workdir, cache: Path, names: tuple[str, ...]
) -> dict[str, Embedding]:
    """Embeddings by name, of config.models or pretrained.

    Args:
      config: of an experiment.
      text: that they are trained on, and whose vocabulary they have.
      work: the run's folder, for the checkpoints of a training.
      cache: the cache directory.
      names: of the embeddings.

    Raises:
      UserError: an unknown name, or values that do not fit.
    """
    check(config, names)
    found = {}
    for name in names:
        if name in config.models:
            arrays = _trained(name, config, text, work, cache)
            known = np.ones(len(arrays["vectors"]), bool)
            found[name] = Embedding(arrays["vectors"], known, float(arrays["words_per_second"]))
        else:
            found[name] = _pretrained(name, text, cache)
    return found


def shared(
    a: Embedding, b: Embedding
) -> tuple[Float[np.ndarray, "n d_a"], Float[np.ndarray, "n d_b"]]:
    """The vectors of the words that both have."""
    both = a.known & b.known
    return a.vectors[both], b.vectors[both]


def check(config: ConfigDict, names: tuple[str, ...]) -> None:
    """Says at the start what is wrong with names and with the models' values.

    Raises:
      UserError: an unknown name, or values that do not fit.
    """
    if len(set(names)) < max(2, len(names)):
        raise UserError(f"embeddings is {','.join(names)}: give at least two, each once.")
    for name in names:
        if name not in config.models:
            cli.choose(dict.fromkeys([*config.models, *words.SPACES]), name, "embedding")
            continue
        values = _values(name, config)
        for key, value in values.items():
            number = isinstance(value, int | float) and key not in ("random_seed", "unit")
            if number and not value > 0:
                raise UserError(f"{key} of {name} is {value}: give a positive number.")
        if "start" in values:
            starts = [other for other in config.models if config.models[other].kind != "lstm"]
            cli.choose(dict.fromkeys(starts), values["start"], f"start of {name}")


def _values(name: str, config: ConfigDict) -> dict:
    """All that determines a model, those of its kind below its own."""
    own = config.models[name]
    return cli.choose(TRAINERS, own.kind, "kind of model") and {
        **config[own.kind].to_dict(),
        **own.to_dict(),
    }


def _recipe(name: str, config: ConfigDict, text: Text) -> list:
    values = _values(name, config)
    recipe = [VERSION, values, kept.digest(text.corpus.tokens)]
    if "start" in values:
        recipe += [_recipe(values["start"], config, text), kept.digest(text.labels, text.training)]
    return recipe


def _trained(name: str, config: ConfigDict, text: Text, work: Workdir, cache: Path) -> dict:
    """Vectors and throughput, from the cache directory or trained into it."""
    values = _values(name, config)
    start = None
    if "start" in values:
        start = _trained(values["start"], config, text, work, cache)["vectors"]

    part = f"train-{name}"

    def compute():
        resumed = (work.path / "checkpoints" / part).exists()
        began = time.perf_counter()
        vectors, seen = TRAINERS[values["kind"]](values, text, work, part, start)
        speed = np.nan
        if not resumed:
            speed = seen / (time.perf_counter() - began)
            work.log(f"{part}-speed", 0, {"words_per_second": speed})
            logging.info("Trained %s on %s words a second", name, f"{speed:,.0f}")
        return {"vectors": vectors, "words_per_second": np.array(speed)}

    found = kept.arrays(cache / "embeddings", name, _recipe(name, config, text), compute)
    train.forget_checkpoints(work, part)
    return found


def _cbow(values: dict, text: Text, work: Workdir, part: str, _) -> tuple[np.ndarray, int]:
    settings = _settings(cbow.Settings, values)
    draws, start = jax.random.split(jax.random.key(values["random_seed"]))
    state = train.run(
        cbow.step,
        cbow.init(settings, len(text.corpus.words), start),
        cbow.data(text.corpus, values["subsample"], settings, draws),
        settings,
        num_steps=settings.epochs * settings.pieces,
        chunk=settings.pieces,
        work=work,
        part=part,
    )
    return np.asarray(state.inputs), settings.epochs * np.sum(text.corpus.tokens >= 0)


def _glove(values: dict, text: Text, work: Workdir, part: str, _) -> tuple[np.ndarray, int]:
    settings = _settings(glove.Settings, values)
    draws, start = jax.random.split(jax.random.key(values["random_seed"]))
    number, num_words = values["blocks"], len(text.corpus.words)
    counts = glove.cooccurrence(text.corpus.tokens, num_words, values["window"])
    state = train.run(
        glove.step,
        glove.init(settings, num_words, number, start),
        glove.blocks(counts, number, values["x_max"], values["power"], draws),
        settings,
        num_steps=values["steps"],
        chunk=1,
        work=work,
        part=part,
    )
    seen = values["steps"] * settings.epochs * np.sum(text.corpus.tokens >= 0)
    return np.asarray(glove.vectors(state.parameters)), seen


def _lstm(values: dict, text: Text, work: Workdir, part: str, start) -> tuple[np.ndarray, int]:
    settings = _settings(lstm.Settings, values)
    draws, network = jax.random.split(jax.random.key(values["random_seed"]))
    of_text, word = corpus.members(text.corpus.tokens, text.gap)
    read = lstm.last_words(of_text, word, len(text.labels), values["length"])
    learned, held_out = (
        lstm.Data(jnp.asarray(read[rows]), jnp.asarray(text.labels[rows]), draws)
        for rows in (text.training, ~text.training)
    )
    if values["unit"]:
        start = start / np.linalg.norm(start, axis=1, keepdims=True)
    state = train.run(
        lstm.step,
        lstm.init(settings, start, network),
        learned,
        settings,
        num_steps=values["steps"],
        chunk=values["steps"] // 5 or 1,
        work=work,
        part=part,
    )
    accuracy = float(lstm.accuracy(state.parameters, held_out, settings))
    work.log(f"{part}-test", 0, {"accuracy": accuracy})
    seen = values["steps"] * settings.updates * settings.batch * values["length"]
    return np.asarray(state.parameters.table[...]), seen


TRAINERS = {"cbow": _cbow, "glove": _glove, "lstm": _lstm}


def _settings(kind: type, values: dict):
    return kind(**{name: values[name] for name in kind._fields})


def _pretrained(name: str, text: Text, cache: Path) -> Embedding:
    space = words.load(name, words.NUM_WORDS, cache)
    row_of = {word: row for row, word in enumerate(space.words)}
    rows = np.array([row_of.get(word, -1) for word in text.corpus.words])
    known = rows >= 0
    if known.sum() < 2:
        raise UserError(f"The text shares fewer than two words with '{name}': give more text.")
    return Embedding(np.where(known[:, None], space.vectors[rows], 0), known, np.nan)
