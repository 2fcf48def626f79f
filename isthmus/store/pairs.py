"""Whether pairs speak for their store: are they like it, is each of one item, and by which metric.

All vectors of the old model are there. Rows that are drawn at random have as many of each other
among their nearest rows of the store as their number says; versions of few texts, and texts of one
topic, have more.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy import sparse
from scipy.stats import norm

from common.arrays import AnyArray
from common.errors import check_choice
from common.linear import unit
from common.retrieval import top_k
from isthmus.store.remapping import NEAREST, Choice, other_rows, overlap

CLOSE, WIDE = 5, 50  # nearest rows of the store among which pairs are counted
CROWDED = 1.3  # times as many pairs as of a random sample
DEVIATIONS = 4.0  # from the number of a random sample, and of a wrong partner from random ones
APART = 1.7  # deviations of right partners from random ones
NEAR = 1.4  # of right ones from which few wrong partners are told, and not many alone
FEW_WRONG, MANY_WRONG = 0.05, 0.5  # share of pairs, of those that are used
LEAST_WRONG = 8  # pairs: half are seen, as real encoders without any had up to 3 unexpected ones
QUERIES = 1_000  # pairs, at most, whose nearest rows are sought here
LEAST = 50  # pairs that are left without near-duplicates
LENGTHS_DIFFER, MUCH = 0.05, 0.3  # deviation of the lengths of vectors, as a share of their mean

ONE_TOPIC = "the pairs are nearer to each other than random rows of the store, as if of one topic"


def _bits(x) -> Float[np.ndarray, "n b"]:
    """-1 and 1 of the bits of packed rows, of uint8 or int8, or the signs of other rows."""
    x = np.asarray(x)
    if is_packed(x):
        return np.unpackbits(x.astype(np.int16).astype(np.uint8), axis=1) * np.float32(2) - 1
    return np.where(x > 0, 1, -1).astype(np.float32)


METRICS: dict[str, Callable[[AnyArray], Float[Array, "n d"]]] = {  # rows whose products are sought
    "cosine": lambda x: unit(jnp.asarray(x, jnp.float32)),
    "dot": lambda x: jnp.asarray(x, jnp.float32) / np.linalg.norm(x, axis=1).max(),
    "hamming": lambda x: unit(jnp.asarray(_bits(x))),
}


def is_packed(old: AnyArray) -> bool:
    """Whether vectors may be packed bits: all numbers are integers of 8 bits, and not signs."""
    old = np.asarray(old)[:QUERIES]
    return bool(np.all((old == np.rint(old)) & (np.abs(old) < 256)) and np.abs(old).max() > 1)


def searched(old: AnyArray, metric: str | None) -> Float[Array, "n d"]:
    """Rows of a store, or queries, whose inner products are in the order of the metric."""
    check_choice("metric", metric or "cosine", METRICS)
    return METRICS[metric or "cosine"](old)


def metric_doubt(old: AnyArray, new: AnyArray) -> tuple[str | None, str | None]:
    """Why a store may not be searched by cosines, and by what it may be; None: nothing is wrong.

    Where lengths differ a little, as most do that are not 1, it is said and no doubt.
    """
    old, new = np.asarray(old)[:QUERIES], np.asarray(new)[:QUERIES]
    if is_packed(old):
        stores = searched(new, None), searched(old, None), searched(old, "hamming")
        true, *lists = (other_rows(x, x, min(NEAREST, len(x) - 1)) for x in stores)
        by_cosine, by_bits = (overlap(rows, true).mean() for rows in lists)
        if by_bits > by_cosine:
            return "the old vectors look like packed bits: give --metric=hamming", "hamming"
    lengths = np.linalg.norm(old.astype(np.float32), axis=1)
    spread = lengths.std() / lengths.mean()
    if spread < LENGTHS_DIFFER:
        return None, None
    say = "say whether the store is searched by --metric=cosine or --metric=dot"
    doubt = f"the old vectors differ in length: {say}"
    return (doubt, "dot") if spread > MUCH else (f"{doubt} (cosines are assumed)", None)


def sampled(
    store: Float[AnyArray, "n d"], rows: Int[np.ndarray, " m"]
) -> tuple[Int[np.ndarray, " p"], str | None]:
    """Of pairs that are near-duplicates, keeps one; `rows` are those of the pairs in the store.

    Returns the places of the pairs that are kept, and why these are not like the store, or None.
    """
    places = np.arange(len(rows))
    close, wide, lists, cosines = _crowding(store, rows)
    if not (close or wide):
        return places, None
    if close:  # much nearer than any row that is not in a pair
        inside = np.isin(lists, rows)
        distances = np.sqrt(np.maximum(2 - 2 * cosines, 0))
        outside = np.where(inside, np.inf, distances).min(axis=1)
        outside = np.where(np.isinf(outside), distances[:, -1], outside)
        i, j = np.nonzero(inside & (distances < outside[:, None] / 2))
        place = np.zeros(len(store), int)
        place[rows] = places
        graph = sparse.coo_array((np.ones(len(i)), (i, place[lists[i, j]])), (len(rows),) * 2)
        groups = sparse.csgraph.connected_components(graph, directed=False)[1]
        thinned = np.sort(np.unique(groups, return_index=True)[1])
        if LEAST <= len(thinned) < len(rows):
            _, wide, *_ = _crowding(store, rows[thinned])
            return thinned, ONE_TOPIC if wide else None
        if len(thinned) < LEAST:
            return places, f"the pairs are versions of {len(thinned)} items alone"
    return places, ONE_TOPIC


def _crowding(store, rows):
    """Whether too many pairs are among the `CLOSE` and `WIDE` nearest, these lists, and cosines."""
    queries = jnp.take(jnp.asarray(store), rows, axis=0)
    cosines, lists = map(np.asarray, top_k(queries, store, min(WIDE + 1, len(store))))
    others = np.argsort(lists == rows[:, None], axis=1, kind="stable")[:, : lists.shape[1] - 1]
    lists, cosines = (np.take_along_axis(x, others, axis=1) for x in (lists, cosines))
    inside, expected = np.isin(lists, rows), (len(rows) - 1) / (len(store) - 1)
    found = []
    for count in (CLOSE, WIDE):
        shares = inside[:, :count].mean(axis=1)
        error = DEVIATIONS * max(shares.std(), np.sqrt(expected / count)) / np.sqrt(len(rows) / 2)
        found.append(shares.mean() > max(CROWDED * expected, expected + error))
    return *found, lists, cosines


def wrong_partners(
    choice: Choice, old: Float[AnyArray, "p d_old"], new: Float[AnyArray, "p d_new"]
) -> tuple[Bool[np.ndarray, " p"], float]:
    """The pairs whose partners are probably of other items, and the share of further wrong ones.

    The cosine of a mapped row with its partner is compared with those with random partners, in
    their deviations. Of wrong partners half are below 0, of right ones as many as a normal
    distribution of the highest scores says, mostly hardly any: this gives the share, 0 if too few
    are seen. Which ones they are says a mixture of a standard normal distribution, the wrong
    partners, and that of the right ones. Maps by which these do not stand apart leave it open.
    """
    mapped = np.array(unit(choice.aligner.apply(old)))
    mapped[choice.rows] = choice.mapped
    embedded = np.asarray(unit(choice.aligner.normalise_target(new)))
    products = mapped @ np.asarray(choice.embedded)[:QUERIES].T
    own = np.sum(mapped * embedded, axis=1)
    scores = (own - products.mean(axis=1)) / products.std(axis=1)
    below = float((scores < 0).mean())
    right = scores[scores >= np.quantile(scores, min(2 * below, 0.9))]
    centre = np.median(right)
    scale = 1.48 * np.median(np.abs(right - centre))
    of_right = min(float(norm.cdf(-centre / scale)), 0.25)
    all_wrong = float(np.clip((below - of_right) / (0.5 - of_right), 0, 1))
    found, share, apart = np.zeros(len(scores), bool), all_wrong, centre / np.hypot(1, scale)
    if apart >= APART:
        share = max(share, FEW_WRONG)
        for _ in range(50):
            wrong = share * norm.pdf(scores)
            wrong /= wrong + (1 - share) * norm.pdf(scores, centre, scale) + 1e-300
            share = wrong.mean()
        found = (wrong > 0.9) & (scores < DEVIATIONS)
    further = all_wrong - float(found.mean())
    least = max(FEW_WRONG if apart >= NEAR else MANY_WRONG, LEAST_WRONG / len(scores))
    return found, further if further >= least else 0.0
