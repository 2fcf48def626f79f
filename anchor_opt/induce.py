"""Every row's best partner in the other space, once both are in common coordinates: one pass.

CSLS takes the hubness of each row (its mean similarity to its nearest neighbours) over the most
frequent rows of the other space: 20,000 of 200,000 say it as well. One pass over all pairs is then
a product, two argmaxes and two sums.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from common.parallel import block_rows, scan_rows
from common.retrieval import largest, mean_top_k, products


class Dictionary(NamedTuple):
    """The best target row of every source row.

    Attributes:
      to_target: that row.
      to_source: the best source row of every target row.
      score: its CSLS.
      mutual: whether the source row is the best one of its target row, too.
      confidence: the pair's share of the similarity of its rows to all others, see `induce`.
    """

    to_target: Int[Array, " n"]
    to_source: Int[Array, " m"]
    score: Float[Array, " n"]
    mutual: Bool[Array, " n"]
    confidence: Float[Array, " n"]


@partial(jax.jit, static_argnames=("neighbours", "frequent"))
def induce(
    source: Float[Array, "n r"],
    target: Float[Array, "m r"],
    *,
    neighbours: int = 10,
    frequent: int = 20_000,
    inverse_temperature: float = 30.0,
) -> Dictionary:
    """Partners by CSLS = 2 cos - r(source row) - r(target row) (Lample et al. 2018).

    The confidence of a pair is the smaller of its two shares exp(b cos) / sum of exp(b cos), over
    all target rows and over all source rows (the softmax and the inverted softmax of Smith et al.
    2017, who have b = 30).

    Args:
      source: unit rows in common coordinates, most frequent first.
      target: likewise.
      neighbours: rows that r averages over (cut to the rows there are).
      frequent: rows of the other space among which they are sought.
      inverse_temperature: b.
    """
    target_hubness = mean_top_k(target, source[:frequent], min(neighbours, len(source), frequent))
    near = min(neighbours, len(target), frequent)

    def step(carry, index, valid, block, target, target_hubness):
        best, choice, mass = carry
        similarity = products(block, target)
        hubness = largest(similarity[:, :frequent], near)[0].mean(axis=1)
        score = 2 * similarity - target_hubness
        to_target = score.argmax(axis=1)
        picked = (jnp.arange(len(block)), to_target)
        weight = jnp.where(valid[:, None], jnp.exp(inverse_temperature * (similarity - 1)), 0.0)
        back = 2 * similarity - jnp.where(valid, hubness, jnp.inf)[:, None]
        winner = back.argmax(axis=0)
        value = jnp.take_along_axis(back, winner[None], axis=0)[0]
        better = value > best  # strict: ties stay with the lower row
        carry = (
            jnp.where(better, value, best),
            jnp.where(better, index[winner], choice),
            mass + weight.sum(axis=0),
        )
        return carry, (to_target, score[picked] - hubness, weight[picked], weight.sum(axis=1))

    def merge(first, second):
        better = second[0] > first[0]
        best, choice = (jnp.where(better, b, a) for a, b in zip(first[:2], second[:2], strict=True))
        return best, choice, first[2] + second[2]

    m = target.shape[0]
    init = jnp.full(m, -jnp.inf), jnp.zeros(m, jnp.int32), jnp.zeros(m)
    (_, to_source, target_mass), (to_target, score, weight, source_mass) = scan_rows(
        step,
        init,
        merge,
        source,
        target,
        target_hubness,
        block=block_rows(m),
    )
    mutual = to_source[to_target] == jnp.arange(source.shape[0])
    mass = jnp.maximum(source_mass, target_mass[to_target])
    return Dictionary(to_target, to_source, score, mutual, weight / jnp.maximum(mass, 1e-30))
