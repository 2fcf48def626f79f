"""The experiments: data, method, metrics, report."""

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from ml_collections import ConfigDict

from common.errors import UserError
from common.run import results, train
from common.run.settings import settings
from common.run.workdir import Workdir
from lpl import (
    bilingual_data,
    methods,
    nli,
    nli_data,
    nli_report,
    training,
    translation,
    word_alignment_report,
)

SPLITS = ("test", "validation")
NEAREST_WORDS_OF = "lpa_mse"  # the method whose nearest words are shown, as in Table 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordAlignment:
    """Values of configs/lpl/word_alignment.py."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    dictionaries: tuple[str, ...]
    test_dictionaries: tuple[str, ...]
    max_rows: int
    num_pairs: tuple[int, ...]
    max_pairs: tuple[int, ...]
    split: str
    random_seeds: tuple[int, ...]
    methods: tuple[str, ...]
    neighbour_words: tuple[str, ...]
    num_neighbours: int


def word_alignment(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Tables 1a and 2: every method on every pair of spaces and number of known pairs."""
    values = settings(WordAlignment, config)
    hubness = settings(translation.Hubness, config)
    sizes = settings(bilingual_data.Sizes, config)
    _check("method", values.methods, methods.METHODS)
    _check("split", [values.split], SPLITS)
    fits = {name: settings(methods.METHODS[name], config[name]) for name in values.methods}

    def measure(data, split, problem, method, part, words):
        mapped = fits[method].fit(problem, work, part)
        found = []
        for name in config[method].retrieval:
            queries, translations = jnp.asarray(split.queries), jnp.asarray(split.translations)
            precision = translation.precision(*mapped, queries, translations, name, hubness)
            found += [
                {"labels": {"retrieval": name}, "metric": metric, "value": value}
                for metric, value in precision.items()
            ]
        return [found, _nearest_words(data, mapped, words, values.num_neighbours)]

    measured, coverage, nearest = [], [], {}
    for number, (*names, test, limit) in enumerate(_spaces(values), 1):
        counts = sorted({min(count, limit) for count in values.num_pairs})
        data = bilingual_data.load(tuple(names), test, max_rows=values.max_rows, cache=cache)
        coverage += word_alignment_report.coverage(data)
        num_items, dim = data.source.vectors.shape
        described = {"dataset": data.title, "source": data.names[0], "target": data.names[1]}
        described |= {"proxy": data.proxy, "num_items": num_items, "dim": dim}
        for random_seed in values.random_seeds:
            split = bilingual_data.split(data, counts[-1], random_seed, sizes)
            problem = methods.Problem(
                source=jnp.asarray(data.source.vectors),
                target=jnp.asarray(data.target.vectors),
                pairs=jnp.asarray(split.train),
                num_pairs=len(split.train),
                key=jax.random.key(random_seed),
            )
            for num_pairs, method in itertools.product(counts, values.methods):
                spaces = "-".join(Path(name).name for name in names[:2])
                part = f"{number}-{spaces}-{method}-{num_pairs}-seed{random_seed}"
                largest = num_pairs == counts[-1]
                shown = (method, random_seed) == (NEAREST_WORDS_OF, values.random_seeds[0])
                words = values.neighbour_words if largest and shown else ()
                known = problem._replace(num_pairs=num_pairs)
                compute = partial(measure, data, split, known, method, part, words)
                found, near = work.part(part, compute)
                train.forget_checkpoints(work, part)
                nearest |= {data.title: near} if near else {}
                run = {"method": method, "num_pairs": num_pairs, "random_seed": random_seed}
                for one in found:
                    key = method, one["labels"]["retrieval"], one["metric"]
                    paper = word_alignment_report.published(*key, data) if largest else {}
                    measured.append(described | run | one | paper)
    labels = {"split": values.split}
    measured += word_alignment_report.gains(measured)
    rows = results.summarise(measured, experiment=config.experiment, labels=labels)
    table = word_alignment_report.table(rows, coverage, nearest)
    return results.finish(work, rows, table, word_alignment_report.figures(rows))


def _spaces(values: WordAlignment) -> Iterable[tuple[str, str, str, str, int]]:
    """Source, target, dictionary, test dictionary and most known pairs of each pair of spaces."""
    tests = values.test_dictionaries or ("",) * len(values.sources)
    limits = values.max_pairs or (max(values.num_pairs),) * len(values.sources)
    lists = values.sources, values.targets, values.dictionaries, tests, limits
    if len(set(map(len, lists))) > 1:
        raise UserError(
            f"There are {len(values.sources)} sources, {len(values.targets)} targets, "
            f"{len(values.dictionaries)} dictionaries, {len(tests)} test dictionaries and "
            f"{len(limits)} max_pairs: give one of each for every pair of spaces (the last two may "
            "be left out)."
        )
    return zip(*lists, strict=True)


def _nearest_words(
    data: bilingual_data.BilingualData, mapped: methods.Common, words: Sequence[str], count: int
) -> dict[str, dict]:
    """Word -> its translation and nearest words, for words that the dictionary has."""
    row_of = {word: row for row, word in enumerate(data.source.words)}
    # The first translation of a word is its best one: in reverse order, it is set last.
    translations = dict(reversed(data.dictionary.pairs.tolist()))
    vocabularies, found = (data.source.words, data.target.words), {}
    for word in words:
        if (row := row_of.get(word)) in translations:
            pair = row, translations[row]
            near = translation.nearest_words(*mapped, pair, vocabularies, count)
            found[word] = near | {"translation": data.target.words[pair[1]]}
    return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inference:
    """Values of configs/lpl/nli.py."""

    datasets: tuple[str, ...]
    encoder: str
    max_pieces: int
    smoothing: float
    num_pairs: tuple[int, ...]
    split: str
    random_seeds: tuple[int, ...]
    methods: tuple[str, ...]
    map: str
    map_hidden: int
    classifier_hidden: int
    k: int
    regularisation: float
    num_neighbours: int


def inference(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Figures 3 to 5 and Table 3: every method on every data set and number of training pairs."""
    values = settings(Inference, config)
    _check("method", values.methods, nli.METHODS)
    _check("split", [values.split], SPLITS)
    limits = settings(nli_data.Limits, config)
    corpora = {name: nli_data.load(name, limits, cache) for name in values.datasets}

    def measure(method, parameters, data, static, tests, shown, part):
        state = nli.start(jax.tree.map(jnp.copy, parameters), static)  # the copies are donated
        runs = len(values.random_seeds)
        state = training.run(nli.step, state, data, static, work=work, part=part, runs=runs)
        found, nearest = [], []
        for test, (texts, pairs) in tests.items():
            labels, hidden = nli.predict(state.parameters, data, pairs, static)
            for i, random_seed in enumerate(values.random_seeds):
                scores = {"accuracy": float(np.mean(np.asarray(labels[i]) == pairs.labels))}
                if method.premise:  # else pairs with one hypothesis have the same representation
                    scores["neighbour_agreement"] = nli.neighbour_agreement(
                        hidden[i], pairs.labels, values.num_neighbours
                    )
                run = {"labels": {"test": test}, "random_seed": random_seed}
                found += [run | {"metric": name, "value": value} for name, value in scores.items()]
            if shown and method.premise and not nearest:
                nearest = nli_report.nearest_pairs(
                    texts, np.asarray(labels[0]), hidden[0], values.num_neighbours
                )
        return [found, nearest]

    measured, nearest = [], {}
    for name, corpus in corpora.items():
        data, keys, tests = _encoded(corpus, values, cache)
        dim = data.vectors.shape[1]
        hidden = values.map_hidden, values.classifier_hidden
        parameters, apply, classify = nli.init(values.map, dim, *hidden, keys)
        for num_pairs, method in itertools.product(values.num_pairs, values.methods):
            part = f"{name}-{method}-{num_pairs}"
            known = nli.restrict(data, nli.METHODS[method], num_pairs)
            functions = {"apply": apply, "classify": classify}
            static = settings(nli.Settings, config, **functions, **config[method])
            shown = num_pairs == max(values.num_pairs)
            arguments = nli.METHODS[method], parameters, known, static, tests, shown, part
            found, near = work.part(part, partial(measure, *arguments))
            train.forget_checkpoints(work, part)
            if near:
                nearest.setdefault(corpus.title, {})[method] = near
            shared = {"dataset": corpus.title, "method": method, "num_pairs": num_pairs}
            shared |= {"proxy": corpus.proxy, "dim": dim}
            for one in found:
                paper = nli_report.published(corpus.title, method, num_pairs, one["metric"])
                measured.append(shared | one | paper)
    measured += nli_report.gains(measured)
    shared = {"source": values.encoder, "target": values.encoder, "labels": {"split": values.split}}
    rows = results.summarise(measured, experiment=config.experiment, **shared)
    table = nli_report.table(rows, nearest)
    return results.finish(work, rows, table, nli_report.figures(rows))


def _encoded(
    corpus: nli_data.Corpus, values: Inference, cache: Path
) -> tuple[nli.Data, Array, dict[str, tuple[nli_data.SentencePairs, nli.EncodedPairs]]]:
    """Training data, the key of each run's initialisation, and the pairs that are measured.

    Each random run has its own random training pairs, initialisation and batches.
    """
    largest, available = max(values.num_pairs), len(corpus.train.labels)
    if largest > available:
        raise UserError(
            f"num_pairs asks for {largest} training pairs, but {corpus.title} has {available}: "
            "lower num_pairs or raise max_train."
        )
    tests = corpus.tests if values.split == "test" else {"validation": corpus.validation}
    vectors, parts = nli_data.encode(
        corpus, values.encoder, cache, max_pieces=values.max_pieces, smoothing=values.smoothing
    )
    premises = jnp.asarray(np.unique(parts["train"].premises))
    vectors = jnp.asarray(vectors)
    neighbours, weights = nli.premise_neighbours(vectors, premises, values.k, values.regularisation)
    drawn = np.array(
        [np.random.default_rng(s).permutation(available)[:largest] for s in values.random_seeds]
    )
    keys = [jax.random.split(jax.random.key(random_seed)) for random_seed in values.random_seeds]
    starts, draws = (jnp.stack(part) for part in zip(*keys, strict=True))
    data = nli.Data(
        vectors=vectors,
        neighbours=neighbours,
        weights=weights,
        inputs=jnp.ones(2),
        num_pairs=jnp.array(largest),
        pairs=nli.EncodedPairs(*(jnp.asarray(column[drawn]) for column in parts["train"])),
        key=draws,
    )
    return data, starts, {name: (texts, parts[name]) for name, texts in tests.items()}


def _check(kind: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"There is no {kind} '{name}': choose from {', '.join(known)}.")


EXPERIMENTS = {"word_alignment": word_alignment, "nli": inference}
