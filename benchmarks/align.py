"""Aligns two large spaces from 50 pairs: precision, seconds and peak memory.

  python -m benchmarks.align --spaces=english_french
  python -m benchmarks.align --spaces=random --num_words=200000 --dimension=300

english_french: GloVe 6B (400,000 words, 50-d) moves into 20,000 French fastText words (300-d), from
the 50 pairs of tests/fixtures/english_french_seeds.txt; tested on the English words of the embedded
dictionary that are no seeds, each right if one of its translations is found.
random: a rotated copy with noise, to see what grows with the vocabulary.
"""

import resource
import time
from pathlib import Path

import numpy as np
from absl import app, flags

from anchor_opt import api
from anchor_opt.relative import unit
from common.data import dictionary, french, vectors, words
from common.data.wheels import cache_dir
from common.retrieval import csls_top_k, mean_top_k

SPACES = flags.DEFINE_enum("spaces", "random", ["random", "english_french"], "What is aligned.")
NUM_WORDS = flags.DEFINE_integer("num_words", 200_000, "Words of both random spaces.")
DIMENSION = flags.DEFINE_integer("dimension", 300, "Of both random spaces.")
NOISE = flags.DEFINE_float("noise", 0.5, "Of random spaces, as a share of the signal.")
ROWS = flags.DEFINE_integer("rows", api.ROWS, "Most frequent words that the search sees.")
METHOD = flags.DEFINE_string("method", api.OWN, "Of the aligner.")
SEEDS = Path(__file__).parents[1] / "tests" / "fixtures" / "english_french_seeds.txt"


def random_spaces():
    """A space whose directions differ in variance, its rotated copy, seeds and pairs to test."""
    rng = np.random.default_rng(0)
    n, d = NUM_WORDS.value, DIMENSION.value
    scale = np.linspace(2, 0.5, d, dtype=np.float32)
    x = rng.standard_normal((n, d), np.float32) * scale
    y = x @ np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    y += NOISE.value * rng.standard_normal((n, d), np.float32)
    rows = rng.permutation(n)[:1_550]
    pairs = np.stack([rows, rows], axis=1)
    return x, y, pairs[:50], pairs[50:]


def english_french():
    """As `random_spaces`, of words."""
    source_words = words.glove_index(cache_dir())
    target = french.load(french.NUM_WORDS, cache_dir())
    seeds = dictionary.rows(vectors.read_pairs(SEEDS), source_words, target.words).pairs
    pairs = dictionary.rows(dictionary.wordnet(cache_dir()), source_words, target.words).pairs
    pairs = pairs[~np.isin(pairs[:, 0], seeds[:, 0])]
    return words.glove_table(cache_dir()), target.vectors, seeds, pairs


def main(argv: list[str]) -> None:
    """Aligns and prints."""
    del argv
    load = {"random": random_spaces, "english_french": english_french}[SPACES.value]
    source, target, seeds, test = load()
    began = time.perf_counter()
    found = api.discover(source, target, seeds, rows=ROWS.value, method=METHOD.value)
    seconds = time.perf_counter() - began
    print(f"\n{len(source)} x {len(target)} rows, {len(seeds)} seeds: {seconds:.0f} s")
    print(
        f"start {found.start}, objective {found.objective:.3f}, chance {found.chance:.3f}, failed",
        end="",
    )
    print(f" {found.failed}, {len(found.anchors)} mutual pairs, disbelieved {found.disbelieved}")
    rows, gold = dictionary.gold_sets(test)
    normalised = found.aligner.normalise_moving(source), found.aligner.normalise_fixed(target)
    own = [unit(x @ transform) for x, transform in zip(normalised, found.maps, strict=True)]
    mapped = unit(found.aligner.apply(source[rows]))
    report("the dictionary's coordinates", rows, own[0][rows], own[1], own[0][: ROWS.value], gold)
    others = unit(found.aligner.apply(source[: ROWS.value]))
    report("the saved map", rows, mapped, normalised[1], others, gold)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB")


def report(name, rows, queries, keys, frequent, gold) -> None:
    """Prints precision at 1 and 10, under CSLS."""
    top = csls_top_k(queries, keys, 10, key_hubness=mean_top_k(keys, frequent, 10))[1]
    hits = (np.asarray(top)[:, :, None] == gold[:, None]).any(axis=2)
    for part, of in ((hits, "all"), (hits[rows < ROWS.value], f"the {ROWS.value:,} first")):
        precision = [f"P@{k} {part[:, :k].any(axis=1).mean():.3f}" for k in (1, 10)]
        print(f"{name}: {', '.join(precision)} on {len(part):,} rows of {of}")


if __name__ == "__main__":
    app.run(main)
