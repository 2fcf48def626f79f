"""How well two spaces correspond, and how good a retrieved list is.

Definitions as in the code of Moschella et al. 2023 and Cannistraci et al. 2023.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from common.parallel import block_rows, map_rows


@partial(jax.jit, static_argnames="k")
def retrieval_metrics(
    source: Float[Array, "n d"], target: Float[Array, "n d"], k: int = 10
) -> dict[str, Float[Array, ""]]:
    """Jaccard, MRR and cosine of two spaces whose row i is the same word.

    T(w) are the k target rows of largest cosine with w's target row, S(w) those with w's source
    row; both may hold w. Ties go to the lower index. No [n, n] array is held.

    Args:
      source: unit rows, relative vectors say.
      target: unit rows.
      k: length of the lists; cut to n.

    Returns:
      `jaccard`, the mean of |S & T| / |S | T|; `mrr`, the mean of 1 / rank of w in S(w), 0 outside;
      `cosine`, the mean cosine of source and target row.
    """
    n = source.shape[0]
    k = min(k, n)

    def of_rows(rows, keys):
        word, source, target = rows
        # Not one product for both: XLA sorts whole rows on CPUs where top_k's result is sliced.
        _, found = lax.top_k(source @ keys.T, k)
        _, expected = lax.top_k(target @ keys.T, k)
        cosine = jnp.sum(source * target, axis=1)
        return _jaccard(found, expected), _reciprocal_rank(found, word), cosine

    rows = jnp.arange(n), source, target
    each = map_rows(of_rows, rows, target, block=block_rows(2 * n))
    return dict(zip(("jaccard", "mrr", "cosine"), (x.mean() for x in each), strict=True))


def jaccard(first: Int[Array, "n k"], second: Int[Array, "n k"]) -> Float[Array, ""]:
    """Mean over rows of |A & B| / |A | B|, the indices of a row being distinct."""
    return _jaccard(first, second).mean()


def mrr(index: Int[Array, "n k"], truth: Int[Array, " n"]) -> Float[Array, ""]:
    """Mean of 1 / rank of the truth among a row's indices, best first; 0 where it is not there."""
    return _reciprocal_rank(index, truth).mean()


def precision_at_k(
    index: Int[Array, "n m"], truth: Int[Array, " n"] | Int[Array, "n g"], k: int
) -> Float[Array, ""]:
    """Share of queries with a correct target among their first k.

    Args:
      index: retrieved targets, best first, m >= k.
      truth: the correct target of each query, or its gold set padded with -1. A query without any
        counts as wrong: leave out those not covered.
      k: length of the list looked at.
    """
    gold = truth.reshape(len(truth), -1, 1)
    return jnp.any((index[:, None, :k] == gold) & (gold >= 0), axis=(1, 2)).mean()


def _jaccard(first, second):
    common = jnp.sum(first[:, :, None] == second[:, None, :], axis=(1, 2))
    return common / (first.shape[1] + second.shape[1] - common)


def _reciprocal_rank(index, truth):
    hit = index == truth[:, None]
    return jnp.sum(hit / jnp.arange(1, index.shape[1] + 1), axis=1)
