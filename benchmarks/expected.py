"""How often the interval of the expected share of right matches of a search holds the true share.

  nice python -m benchmarks.expected --searches=runs/expected.jsonl --out=docs/expected.md

Searches of --group are added to the file until each group has --number of them, and the page is
written from all that it holds.
"""

import json
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from absl import app, flags
from jaxtyping import Array
from scipy.special import logit
from scipy.stats import t as student

import isthmus
from anchor_opt.problem import partly_shared
from benchmarks import harness
from common.data.packages import cache_dir
from common.linear import preprocess
from common.run.results import markdown, plus_minus
from common.spaces import paired_spaces, space_pairs
from isthmus import search

WORDS = ("glove:word2vec", "glove100:word2vec", "word2vec:minilm_input", "glove:minilm_input")
SENTENCES = ("minilm_sentences:use_sentences", "wordllama_sentences:minilm_sentences")
MESSAGES = [f"use_messages_{name}:minilm_messages_en" for name in ("de", "es", "fr", "it", "ja")]
SPACES = {"development": (*WORDS, "noisy copy"), "others": (*MESSAGES, *SENTENCES)}
STATED = ["gain", "mutual", "rows", "others"]  # the arguments of `search.expected_share`
ITEMS = 2_400  # of which both samples are drawn
ROWS, KNOWN, SHARED, NOISE = (1_000, 1_500), (0, 5, 15, 50), (1.0, 0.8, 0.6), (0.3, 1.4)
PAGE = Path(__file__).with_suffix(".txt")  # its template
flags.DEFINE_multi_enum("group", [*SPACES], [*SPACES], "Whose searches are made.")
flags.DEFINE_integer("number", 50, "Of the searches of each group.")
flags.DEFINE_string("searches", None, "File of the searches, an object a line.", required=True)
flags.DEFINE_string("out", None, "The page.")
FLAGS = flags.FLAGS


@cache
def spaces(name: str) -> tuple[Array, Array]:
    """The first items of both spaces, those of a noisy copy without the noise; read once."""
    pair = ("minilm", "minilm") if name == "noisy copy" else space_pairs.names(name)
    loaded = paired_spaces.load(*pair, num_words=ITEMS, cache=cache_dir())
    return preprocess(jnp.asarray(loaded.source)), preprocess(jnp.asarray(loaded.target))


def drawn(rng: np.random.Generator, group: str) -> list[dict]:
    """Runs a random search; what it states and what is true, of the source and of the target."""
    name, rows = str(rng.choice(SPACES[group])), int(rng.choice(ROWS))
    x, y = spaces(name)
    if name == "noisy copy":
        y = space_pairs.noisy_isometry(jax.random.key(rng.integers(1e6)), x, rng.uniform(*NOISE))
    known, shared = int(rng.choice(KNOWN)), float(rng.choice(SHARED))
    sizes = {"num_rows": rows, "shared": shared, "num_anchors": known, "num_pairs": known}
    problem = partly_shared(x, y, int(rng.integers(1e6)), **sizes)
    first = rows // int(rng.choice((1, 1, 2)))  # of the source
    pairs = np.stack(problem.pairs, axis=1)
    source, pairs = problem.source[:first], pairs[pairs[:, 0] < first]
    result = isthmus.discover(source, problem.target, pairs, ordered=False)
    matches, truth = result.dictionary, problem.truth[:first]
    partners = np.full(rows, -1)
    partners[truth[truth >= 0]] = np.flatnonzero(truth >= 0)
    about = {"group": group, "spaces": name, "failed": result.failed}
    about |= {"gain": result.corrected_agreement, "mutual": int(np.sum(matches.mutual))}
    return [
        about | {"rows": len(true), "others": len(others), "right": float(np.mean(found == true))}
        for found, true, others in (
            (np.asarray(matches.to_target), truth, partners),
            (np.asarray(matches.to_source), partners, truth),
        )
    ]


def regression(group: pd.DataFrame) -> tuple[np.ndarray, float]:
    """Weights, and half the width of 95% of a new search, by least squares on log odds."""
    columns = np.array([search.predictors(*x) for x in group[STATED].itertuples(index=False)])
    true = logit(group["right"].clip(*search.SHARES).to_numpy())
    weights, *_ = np.linalg.lstsq(columns, true)
    left, freedom = true - columns @ weights, len(true) - len(weights)
    width = student.ppf(0.975, freedom) * np.sqrt(np.sum(left**2) / freedom)
    return weights, float(width)


def page(table: pd.DataFrame) -> str:
    """The page of these searches."""
    found, failed = table[~table["failed"]], table[table["failed"]]
    shares = [search.expected_share(*x) for x in found[STATED].itertuples(index=False)]
    found = found.join(pd.DataFrame(shares, found.index))
    found["error"] = (found["value"] - found["right"]).abs()
    body = []
    for name, of in [*found.groupby("group"), *found.groupby(["group", "spaces"])]:
        title = name if isinstance(name, str) else ": ".join(name)
        means = (f"{of[column].mean():.3f}" for column in ("right", "error", "uncertainty"))
        held = f"{(of['error'] <= of['uncertainty']).mean():.0%}"
        body.append([title, f"{len(of) // 2}", held, *means])
    weights, width = regression(found[found["group"] == "development"])
    return PAGE.read_text().format(
        table=markdown(("Searches", "Number", "Hold", "Right", "Error", "Uncertainty"), body),
        fit=f"weights {', '.join(f'{w:.2f}' for w in weights)}, width {width:.2f}",
        failed=len(failed) // 2,
        most=plus_minus(failed["right"].max(), None),
        commit=harness.commit(),
    )


def main(argv: list[str]) -> None:
    """Makes the searches that are missing, and writes the page."""
    del argv
    path = Path(FLAGS.searches)
    path.touch()
    for group in FLAGS.group:
        known = [json.loads(line)["group"] for line in path.read_text().splitlines()]
        for number in range(known.count(group) // 2, FLAGS.number):
            found = drawn(np.random.default_rng([number, group == "others"]), group)
            with path.open("a") as file:
                file.writelines(f"{json.dumps(row)}\n" for row in found)
    if FLAGS.out:
        Path(FLAGS.out).write_text(page(pd.read_json(path, lines=True)))


if __name__ == "__main__":
    app.run(main)
