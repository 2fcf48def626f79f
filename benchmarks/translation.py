"""Times the parts of word alignment that grow with the vocabulary, and their peak memory.

  python -m benchmarks.translation --num_words=200000 --dimension=300

Random vectors: what is measured is time and memory, not precision.
"""

import resource
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from absl import app, flags

from common.linear import unit
from lpl import loss, translation

NUM_WORDS = flags.DEFINE_integer("num_words", 200_000, "Words of each space.")
DIMENSION = flags.DEFINE_integer("dimension", 300, "Of both spaces.")
NUM_PAIRS = flags.DEFINE_integer("num_pairs", 3_000, "Training pairs, whose neighbours are found.")
NUM_TEST = flags.DEFINE_integer("num_test", 1_500, "Words that are translated.")
HUBNESS_WORDS = flags.DEFINE_integer("hubness_words", 5_000, "As config.hubness_words.")
K = flags.DEFINE_integer("k", 10, "Neighbours.")


def timed(name: str, compute: Callable):
    """Prints the seconds that the call takes, compilation included, and the peak so far."""
    began = time.perf_counter()
    result = jax.block_until_ready(compute())
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{name:42s} {seconds:8.1f} s, peak {peak:5.2f} GiB")
    return result


def main(argv: list[str]) -> None:
    """Runs each part once."""
    del argv
    keys = jax.random.split(jax.random.key(0), 2)
    shape = NUM_WORDS.value, DIMENSION.value
    source, target = (unit(jax.random.normal(key, shape)) for key in keys)
    hubness = translation.Hubness(
        hubness_words=HUBNESS_WORDS.value, csls_neighbours=10, inverse_temperature=30.0
    )
    rows = jnp.arange(NUM_PAIRS.value)
    index = timed(
        f"neighbours of {NUM_PAIRS.value:,} words", lambda: loss.neighbours(source, rows, K.value)
    )
    timed("their weights", lambda: loss.lle_weights(source, rows, index))
    queries = jnp.arange(NUM_TEST.value)
    for retrieval in translation.RETRIEVALS:
        timed(
            f"{NUM_TEST.value:,} translations, {retrieval}",
            lambda retrieval=retrieval: translation.precision(
                source, target, queries, queries[:, None], retrieval, hubness
            ),
        )


if __name__ == "__main__":
    app.run(main)
