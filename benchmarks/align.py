"""Aligns two large spaces from 50 known pairs: precision, seconds and peak memory.

  python -m benchmarks.align --spaces=english_french
  python -m benchmarks.align --spaces=random --num_words=200000 --dimension=300

english_french: GloVe 6B (400,000 words, 50 dimensions) is mapped onto 20,000 French fastText words
(300 dimensions) from the 50 pairs of tests/fixtures/english_french_pairs.txt. The test words are
the other English words of the dictionary; a word is correct if one of its translations is found.
random: a rotated copy with noise, which shows how time and memory grow with the vocabulary.
"""

import resource
from pathlib import Path

import numpy as np
from absl import app, flags

from benchmarks import harness
from common import csls
from common.data.packages import cache_dir
from common.data.readers import pair_files
from common.data.sets import dictionary, french, word_vectors
from common.linear import unit
from isthmus import align

SPACES = flags.DEFINE_enum("spaces", "random", ["random", "english_french"], "Spaces to align.")
NUM_WORDS = flags.DEFINE_integer("num_words", 200_000, "Words of both random spaces.")
DIM = flags.DEFINE_integer("dimension", 300, "Dimensions of both random spaces.")
NOISE = flags.DEFINE_float("noise", 0.5, "Standard deviation of the noise of the random target.")
NUM_PAIRS = flags.DEFINE_integer("num_pairs", 50, "Known pairs of the random spaces.")
NUM_TEST = 1_500
PAIRS = Path(__file__).parents[1] / "tests" / "fixtures" / "english_french_pairs.txt"


def random_spaces():
    """A space with unequal variances, its noisy rotated copy, known pairs and test pairs."""
    rng = np.random.default_rng(0)
    n, d = NUM_WORDS.value, DIM.value
    x = rng.standard_normal((n, d), np.float32) * np.linspace(2, 0.5, d, dtype=np.float32)
    y = x @ np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    y += NOISE.value * rng.standard_normal((n, d), np.float32)
    rows = rng.permutation(n)[: NUM_PAIRS.value + NUM_TEST]
    pairs = np.stack([rows, rows], axis=1)
    return x, y, pairs[: NUM_PAIRS.value], pairs[NUM_PAIRS.value :]


def english_french():
    """English and French words, known pairs and test pairs."""
    source_words, target = word_vectors.glove_index(cache_dir()), french.load(cache_dir())
    pairs, test = (
        dictionary.lookup(entries, source_words, target.words).pairs
        for entries in (pair_files.read(PAIRS).entries, dictionary.wordnet(cache_dir()))
    )
    test = test[~np.isin(test[:, 0], pairs[:, 0])]
    return word_vectors.glove_table(cache_dir()), target.vectors, pairs, test


def main(argv: list[str]) -> None:
    """Aligns the spaces and prints the measurements; P@1 and P@10 are by CSLS."""
    del argv
    load = {"random": random_spaces, "english_french": english_french}[SPACES.value]
    source, target, pairs, test = load()
    seconds, result = harness.seconds(lambda: align.discover(source, target, pairs))
    print(
        f"\n{len(source)} x {len(target)} rows, {len(pairs)} known pairs: {seconds:.0f} s\n"
        f"initialization {result.initialization}, agreement {result.agreement:.3f}, from wrong "
        f"pairs {result.chance_agreement:.3f}, corrected {result.corrected_agreement:.3f}, "
        f"failed {result.failed}, {len(result.anchors)} mutual pairs, "
        f"rejected pairs {result.rejected_pairs}"
    )
    rows, gold = dictionary.gold_sets(test)
    frequent = slice(align.LEARNING_ROWS)
    queries, others = (unit(result.aligner.apply(source[part])) for part in (rows, frequent))
    keys = result.aligner.normalise_target(target)
    nearest = csls.top_k(queries, keys, 10, key_hubness=csls.hubness(keys, others)).index
    hits = (np.asarray(nearest)[:, :, None] == gold[:, None]).any(axis=2)
    for part, words in (
        (hits, "all"),
        (hits[rows < frequent.stop], f"the first {frequent.stop:,}"),
    ):
        precision = [f"P@{k} {part[:, :k].any(axis=1).mean():.3f}" for k in (1, 10)]
        print(f"{', '.join(precision)} on {len(part):,} rows of {words}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB")


if __name__ == "__main__":
    app.run(main)
