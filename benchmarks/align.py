"""Aligns two large spaces from a few known pairs: precision, seconds and peak memory.

  python -m benchmarks.align --num_words=200000

The target is a rotated copy of the source with noise, which shows how time and memory grow with the
vocabulary.
"""

import resource

import numpy as np
from absl import app, flags

from benchmarks import harness
from common import csls
from common.linear import unit
from isthmus.align import LEARNING_ROWS
from isthmus.align.discovery import discover

NUM_WORDS = flags.DEFINE_integer("num_words", 200_000, "Words of both spaces.")
NUM_PAIRS = flags.DEFINE_integer("num_pairs", 50, "Known pairs.")
DIM, NOISE = 300, 0.5  # dimensions, and the standard deviation of the noise
NUM_TEST = 1_500


def spaces():
    """A space with unequal variances, its noisy rotated copy, known pairs and rows to test."""
    rng = np.random.default_rng(0)
    n = NUM_WORDS.value
    x = rng.standard_normal((n, DIM), np.float32) * np.linspace(2, 0.5, DIM, dtype=np.float32)
    y = x @ np.linalg.qr(rng.standard_normal((DIM, DIM)))[0].astype(np.float32)
    y += NOISE * rng.standard_normal((n, DIM), np.float32)
    rows = rng.permutation(n)[: NUM_PAIRS.value + NUM_TEST]
    known = np.stack([rows[: NUM_PAIRS.value]] * 2, axis=1)
    return x, y, known, rows[NUM_PAIRS.value :]


def main(argv: list[str]) -> None:
    """Aligns the spaces and prints the measurements; P@1 and P@10 are by CSLS."""
    del argv
    source, target, pairs, rows = spaces()
    seconds, result = harness.seconds(lambda: discover(source, target, pairs))
    print(
        f"\n{len(source)} x {len(target)} rows, {len(pairs)} known pairs: {seconds:.0f} s\n"
        f"initialization {result.initialization}, agreement {result.agreement:.3f}, from wrong "
        f"pairs {result.chance_agreement:.3f}, corrected {result.corrected_agreement:.3f}, "
        f"failed {result.failed}, {len(result.anchors)} mutual pairs, "
        f"rejected pairs {result.rejected_pairs}"
    )
    frequent = slice(LEARNING_ROWS)
    queries, others = (unit(result.aligner.apply(source[part])) for part in (rows, frequent))
    keys = result.aligner.normalise_target(target)
    nearest = csls.top_k(queries, keys, 10, key_hubness=csls.hubness(keys, others)).index
    for first in (len(source), frequent.stop):
        hits = (np.asarray(nearest) == rows[:, None])[rows < first]
        precision = [f"P@{k} {hits[:, :k].any(axis=1).mean():.3f}" for k in (1, 10)]
        print(f"{', '.join(precision)} on {len(hits):,} of the first {first:,} rows")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    app.run(main)
