"""Whether a store is what the model in use makes, and a kept map does what it did: for every night.

A model is told by its canaries, texts of the store whose vectors it makes anew: unit rows that are
equal up to rounding are of the same model, and equal cosines among other rows of a rotation of it.
Where all rows of a model are near each other, cosines say little, so that columns are standardised.
Single rows of another model lie in other directions: with the second moment C of rows of the model,
x (C + s I)^(-1) x' is smaller for its rows than on the average over all directions.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from common import alignment
from common.aligner import Aligner, prepare
from common.arrays import AnyArray, Unchecked
from common.data.sets.dictionary import one_to_one
from common.errors import UserError, named
from common.linear import unit
from isthmus.store.estimate import Estimate, Searched, estimated

# Measured: MiniLM, E5, USE in 5 to 8 bits, by a scale for each column, have .983, in standardised
# columns .994 (a row .973); texts in lower case or with another prefix there at most .979.
EXACT, ROUNDED = 1e-6, 0.95  # largest difference of two numbers; median cosine, and one of a row
# Median of so many canaries of this variance: of one text, nothing but rounding is left.
STANDARDISED, LEAST_STANDARDISED, VARIANCE = 0.985, 10, 0.01
ROTATED = 0.99  # correlation of the cosines among canaries
# From 100 canaries, in stores of 4,096 of MiniLM's rows of which up to 80% were rotated, none of
# these was missed, and at most .0005 of the others were taken for one.
LEAST_CANARIES, SHRINKAGE, FOREIGN, FEW = 100, 0.2, 0.8, 0.002
TOLD = 0.9  # below which rows of the model have to be on the average, or they fill all directions
TRUSTED_ROWS, BLOCK_ROWS = 5_000, 100_000
NEWEST, LEAST_NEWEST = 0.1, 50  # the last rows of the store, beside the others
# Squared distance of two means, as a share of the variance: of random sentences by MiniLM at most
# .006, of reviews and news .14.
DRIFTED = 0.05
MODELS = {
    "same": "the same",
    "rounded": "the same up to rounding",
    "rotated": "a rotation of the stored one",
    "other": "another one, or takes its texts otherwise (a prefix, lower case, a cut),",
}


class Check(NamedTuple):
    """Sentences on what is wrong and what is right, and the numbers; its text is one line."""

    wrong: list[str]
    right: list[str]
    measured: dict[str, Any]

    def __str__(self) -> str:
        return f"{'WRONG' if self.wrong else 'OK'}: {'; '.join(self.wrong or self.right)}."


def check(
    stored: Float[AnyArray, "n d"],
    again: Float[AnyArray, "m e"] | None = None,
    pairs: Annotated[Unchecked, "p 2"] | None = None,
    *,
    aligner: Aligner | None = None,
    new: Float[AnyArray, "q f"] | None = None,
    new_pairs: Annotated[Unchecked, "r 2"] | None = None,
    kept: Sequence[float] | None = None,
    ids: Sequence[str] | None = None,
) -> Check:
    """Checks a store, and the map that is kept of it if there is one.

    Args:
      stored: raw vectors, in the order in which they were stored.
      again: vectors that the model in use makes of some of their texts.
      pairs: (stored row, row of `again`).
      aligner: a map whose source the store is.
      new: vectors by the map's target model of items to which it was not fitted.
      new_pairs: (stored row, row of `new`).
      kept: what an earlier check has measured of the map, by other such pairs.
      ids: of the stored rows, by which they are named; None: their numbers.
    """
    store = np.asarray(prepare(np.asarray(stored), "stored", ("unit",))[0])
    names = list(map(str, range(len(store)))) if ids is None else ids
    result = Check([], [], {"rows": len(store)})

    def add(is_right: bool, sentence: str, **numbers: Any) -> None:
        (result.right if is_right else result.wrong).append(sentence)
        result.measured.update(numbers)

    def add_rows(is_right: bool, sentence: str, name: str, rows: Int[np.ndarray, " r"]) -> None:
        words = [names[row] for row in rows]
        add(is_right, sentence + f" ({named(words)})" * bool(words), **{name: words})

    if again is not None:
        rows, made = _paired(store, again, pairs, "again")
        model, cosines, correlation = told(store[rows], made)
        same = model in ("same", "rounded")
        numbers = {"median_cosine": float(np.median(cosines)), "correlation": correlation}
        sentence = f"the model in use is {MODELS[model]} by {len(rows):,} canaries"
        add(same, sentence, model=model, **numbers)
        if same and len(changed := rows[cosines < ROUNDED]):
            add_rows(False, f"{len(changed)} of these have changed", "changed", changed)
        others = of_another_model(store, made) if same and len(rows) >= LEAST_CANARIES else None
        if others is not None:
            sentence = f"{len(others):,} of {len(store):,} rows are like another model's"
            add_rows(len(others) <= FEW * len(store), sentence, "of_another_model", others)
    count = int(NEWEST * len(store))
    if count >= LEAST_NEWEST:
        moved = shift(store[:-count], store[-count:])
        sentence = f"the newest {count:,} rows are {moved:z.3f} of the variance from the others"
        add(moved < DRIFTED, sentence, drift=moved)
    if aligner is not None and new is not None:
        share = still_kept(store, aligner, new, new_pairs)
        sentence = f"the map keeps {share.value:.3f} ± {share.uncertainty:.3f} of the ten nearest"
        if kept is not None:
            sentence += f" (before: {kept[0]:.3f} ± {kept[1]:.3f})"
        falls = kept is not None and kept[0] - kept[1] > share.value + share.uncertainty
        add(not falls, sentence, kept=list(share))
    if not (result.wrong or result.right):
        raise UserError(
            f"Of {len(store):,} stored rows alone nothing can be said: give vectors of some that "
            "the model in use has made again (--again)."
        )
    return result


def _paired(store, vectors, pairs, name: str):
    """The rows of the store in pairs, and their partners, unit rows."""
    if pairs is None or not len(pairs):
        raise UserError(f"There are no pairs of stored rows and '{name}': give them, or ids.")
    spaces = alignment.normalised(store, vectors, pairs, ("stored", name), normalise=("unit",))
    rows, partners = np.asarray(pairs)[one_to_one(np.asarray(pairs))].T
    return rows, np.asarray(spaces.target)[partners]


def told(
    stored: Float[np.ndarray, "p d"], made: Float[np.ndarray, "p e"]
) -> tuple[str, Float[np.ndarray, " p"], float]:
    """A key of `MODELS`, the cosine of each row with itself, and the correlation of all others."""
    cosines, equal = np.zeros(len(made)), False
    if made.shape == stored.shape:
        cosines = np.sum(stored * made, axis=1)
        equal = np.median(cosines) >= ROUNDED
        if len(made) >= LEAST_STANDARDISED and stored.var(axis=0).sum() > VARIANCE:
            x, y = (unit((x - x.mean(axis=0)) / (x.std(axis=0) + EXACT)) for x in (stored, made))
            cosines = np.sum(x * y, axis=1)
            equal &= np.median(cosines) >= STANDARDISED
    others = np.triu_indices(min(len(made), 1_000), 1)
    among = np.stack([(x @ x.T)[others] for x in (stored[:1_000], made[:1_000])])
    varied = len(others[0]) > 1 and among.std(axis=1).min() > EXACT
    correlation = float(np.corrcoef(among)[0, 1]) if varied else 0.0
    if equal:
        exact = np.abs(stored - made).max() <= EXACT
        return "same" if exact else "rounded", cosines, correlation
    return "rotated" if correlation >= ROTATED else "other", cosines, correlation


def of_another_model(
    store: Float[np.ndarray, "n d"], trusted: Float[np.ndarray, "p d"]
) -> Int[np.ndarray, " r"] | None:
    """The rows that another model has made; `trusted` are of the model of the others.

    None: rows of the model fill all directions alike, so that others are not told from them.
    """
    if np.median(_strangeness(trusted[1::2], trusted[::2])) > TOLD:
        return None
    known = trusted
    for _ in range(3):  # what is found to be of the model is trusted, too
        others = _strangeness(store, known) > FOREIGN
        own = np.random.default_rng(0).permutation(np.flatnonzero(~others))[:TRUSTED_ROWS]
        known = np.concatenate([trusted, store[own]])
    return np.flatnonzero(others)


def _strangeness(rows: Float[np.ndarray, "n d"], known: Float[np.ndarray, "k d"]):
    """About 1 for rows of random directions, and less for those like the known ones."""
    moment, dimension = known.T @ known / len(known), known.shape[1]
    shrunk = moment + SHRINKAGE * np.trace(moment) / dimension * np.eye(dimension)
    inverse = np.linalg.inv(shrunk)
    inverse = (inverse * dimension / np.trace(inverse)).astype(np.float32)
    blocks = np.array_split(rows, 1 + len(rows) // BLOCK_ROWS)
    return np.concatenate([np.sum((block @ inverse) * block, axis=1) for block in blocks])


def shift(rows: Float[np.ndarray, "n d"], others: Float[np.ndarray, "m d"]) -> float:
    """The squared distance of two means beyond that of random rows, as a share of the variance."""
    apart, variance = rows.mean(axis=0) - others.mean(axis=0), rows.var(axis=0).sum()
    return float(apart @ apart / max(variance, 1e-12) - 1 / len(rows) - 1 / len(others))


def still_kept(store: Float[np.ndarray, "n d"], aligner: Aligner, new, pairs) -> Estimate:
    """The share of the ten nearest that the mapped store keeps of pairs it was not fitted to."""
    rows, made = _paired(store, new, pairs, "new")
    mapped = unit(jnp.asarray(aligner.apply(store)))
    queries = unit(jnp.asarray(aligner.normalise_target(made)))
    searched = Searched(queries, [jnp.take(mapped, rows, axis=0)], mapped)
    return estimated([searched], rows, made, len(mapped))[0]["recall_10"]
