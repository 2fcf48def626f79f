"""How often the intervals of `isthmus migrate` hold the truth, in simulated and in real stores.

  nice python -m benchmarks.estimates --out=docs/estimates.md

Each setting draws a store, random pairs of it and other items as queries, for which the share that
is kept is counted among all rows. Simulated items have 8 to 64 directions, in one topic or forty,
and noise of 0 to 1 of their deviation in each model. Real ones are words of two GloVe, and
sentences of WordLlama, MiniLM and MPNet, by which the constants of the estimate were chosen;
sentences of pairs with E5 or USE, which took no part in it; or messages of programs in two
languages. For the last two kinds all verdicts are shown.
"""

from collections.abc import Iterator
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
from absl import app, flags

from benchmarks import harness
from common.data.packages import cache_dir
from common.linear import unit
from common.retrieval import top_k
from common.run.results import markdown, plus_minus
from common.spaces import paired_spaces
from isthmus.store import remapping
from isthmus.store.estimate import Estimate, Estimates, estimates_of
from isthmus.store.migration import Advice, advise, migrate

ROWS, QUERIES = 6_000, 1_000
SIZES, PAIRS = (1_000, 4_000), (100, 300, 800)
KNOWN = (
    ("glove", "glove100"),
    ("wordllama_sentences", "minilm_sentences"),
    ("minilm_sentences", "mpnet_sentences"),
)
OTHERS = (
    ("e5_sentences", "minilm_sentences"),
    ("e5_sentences", "use_sentences"),
    ("use_sentences", "mpnet_sentences"),
)
MESSAGES = (
    ("minilm_messages_en", "use_messages_ja"),
    ("minilm_messages_en", "use_messages_fr"),
    ("use_messages_de", "use_messages_fr"),
)
KINDS = {"known": KNOWN, "E5, USE": OTHERS, "messages": MESSAGES}
SETTINGS = remapping.Settings(penalties=(0.1, 1.0))
COLUMNS = ["Settings", "Pairs", "Lists", "First"]
MEASURED = ["true", "value", "width"]
PAGE = Path(__file__).with_suffix(".txt")  # its template
flags.DEFINE_integer("simulated", 200, "Number of simulated settings.")
flags.DEFINE_integer("real", 40, "Number of settings of real encoders, of either kind.")
flags.DEFINE_integer("random_seed", 0, "Of all draws.")
flags.DEFINE_string("out", None, "The page.", required=True)
FLAGS = flags.FLAGS


def simulated(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Rows of the same items by two models."""
    latent = int(rng.choice([8, 24, 64]))
    scale = np.linspace(1, rng.choice([0.1, 0.5, 1]), latent)
    topics = rng.normal(size=(rng.choice([1, 40]), latent)) * scale
    items = rng.normal(size=(count, latent)) * scale + topics[rng.integers(len(topics), size=count)]
    views = [items @ rng.normal(size=(latent, dimension)) for dimension in (48, 32)]
    noise = rng.choice([0, 0.05, 0.2, 0.5, 1.0], 2)
    return [x + s * x.std() * rng.normal(size=x.shape) for x, s in zip(views, noise, strict=True)]


def shuffled(rng: np.random.Generator, spaces, size: int) -> list:
    """A store of `size` random rows by both models, and behind it the queries."""
    order = rng.permutation(len(spaces[0]))[: size + QUERIES]
    return [jnp.asarray(x[order], jnp.float32) for x in spaces]


def truth(aligner, old, new) -> Estimates:
    """The shares that are kept, counted."""
    size = len(old) - QUERIES
    true = np.asarray(top_k(unit(new[size:]), unit(new[:size]), remapping.NEAREST).index)
    mapped = unit(aligner.normalise_target(new[size:])), unit(aligner.apply(old[:size]))
    kept = (remapping.kept(*pair, true) for pair in (mapped, (unit(old[size:]), unit(old[:size]))))
    return Estimates(*({name: Estimate(x, 0.0) for name, x in of.items()} for of in kept))


def measured(rng: np.random.Generator, kind: str, spaces) -> Iterator[tuple]:
    """The rows of the table of one setting: `COLUMNS`, and `MEASURED` of each list."""
    size, num_pairs = int(rng.choice(SIZES)), int(rng.choice(PAIRS))
    old, new = shuffled(rng, spaces or simulated(rng, size + QUERIES), size)
    pairs, rows = (old[:num_pairs], new[:num_pairs]), np.arange(num_pairs)
    choice = remapping.choose(*pairs, SETTINGS)
    estimates = estimates_of(choice, pairs[1], rows, [unit(old[:size])], old[:size], SETTINGS)
    true = truth(choice.aligner, old, new)
    for lists, found, of in zip(("mapped", "old"), estimates, true, strict=True):
        for name, share in found.items():
            about = kind, num_pairs, lists, remapping.length_of(name)
            yield *about, of[name].value, *share


def summary(table: pd.DataFrame, by: list[str]) -> str:
    """How often intervals hold, in Markdown."""
    rows = []
    for key, group in table.groupby(by):
        error = group["value"] - group["true"]
        held = f"{np.mean(np.abs(error) <= group['width']):.0%}"
        means = f"{error.mean():+.3f}", f"{group['width'].mean():.3f}"
        rows.append([*map(str, key), f"{len(group)}", held, *means])
    return markdown([*by, "Number", "Hold", "Error", "Uncertainty"], rows)


def short(advice: Advice) -> str:
    """A verdict in a cell."""
    strategy, count = advice
    return f"{count} of {strategy.removesuffix(' candidates')}" if count else strategy


def verdicts(rng: np.random.Generator, names: tuple[str, str], spaces) -> Iterator[list[str]]:
    """The rows of the table of verdicts for one old and one new model."""
    size = ROWS - QUERIES
    for num_pairs in (300, 1_000):
        old, new = shuffled(rng, spaces, size)
        result = migrate(old[:size], new[:num_pairs], np.stack([np.arange(num_pairs)] * 2, axis=1))
        true = truth(result.aligner, old, new)
        shares = [
            f"{plus_minus(*found[name])} / {plus_minus(of[name].value, None)}"
            for found, of in zip(result.estimates[::-1], true[::-1], strict=True)
            for name in ("recall_10", "within_200")
        ]
        models = (name.removesuffix("_sentences") for name in names)
        by_truth = short(advise(true, True))
        yield [*models, f"{num_pairs:,}", short(result.advice), by_truth, *shares]


def main(argv: list[str]) -> None:
    """Writes the page."""
    del argv
    rng, table, judged = np.random.default_rng(FLAGS.random_seed), [], []
    for kind, encoders in KINDS.items():
        loaded = [paired_spaces.load(*pair, num_words=ROWS, cache=cache_dir()) for pair in encoders]
        both = [(pair, (x.source, x.target)) for pair, x in zip(encoders, loaded, strict=True)]
        both += [(pair[::-1], spaces[::-1]) for pair, spaces in both]
        for i in range(FLAGS.real):
            table += measured(rng, kind, both[rng.integers(len(both))][1])
            print(kind, i, flush=True)
        for names, spaces in both if kind != "known" else ():
            judged += verdicts(rng, names, spaces)
    for i in range(FLAGS.simulated):
        table += measured(rng, "simulated", None)
        print("simulated", i, flush=True)
    frame = pd.DataFrame(table, columns=COLUMNS + MEASURED)
    both = "First 10: old, estimate / truth", "first 200", "First 10: mapped", "first 200"
    header = ["Old", "New", "Pairs", "Verdict", "By the truth", *both]
    text = PAGE.read_text().format(
        count=len(frame) // 8,
        simulated=FLAGS.simulated,
        real=FLAGS.real,
        queries=QUERIES,
        coverage=summary(
            pd.concat([frame.assign(Settings="all"), frame]), ["Settings", "Lists", "First"]
        ),
        by_pairs=summary(frame[frame["First"] == 10], COLUMNS[:3]),
        rows=ROWS - QUERIES,
        verdicts=markdown(header, judged),
        seed=FLAGS.random_seed,
        commit=harness.commit(),
    )
    Path(FLAGS.out).write_text(text)


if __name__ == "__main__":
    app.run(main)
