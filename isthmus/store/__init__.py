"""What to do with a store of vectors when its embedding model changes.

From items that both models have embedded, `migrate` fits a map of the old vectors into the new
model's space, estimates what each way to go on keeps (remapping.py), judges it where relevant
documents are known (strategies.py), and says what to do. With fewer than 100 such pairs, the rows
of both spaces are matched first (`isthmus.align.discover`), which takes minutes.
"""

import dataclasses
from typing import Annotated, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from common import alignment, likeness
from common.arrays import AnyArray, Unchecked
from common.data.sets.dictionary import one_to_one
from common.errors import UserError
from common.linear import unit
from isthmus import align
from isthmus.store import remapping, strategies
from isthmus.store.remapping import Advice, Choice
from isthmus.store.result import SETTINGS, Migration, Search
from isthmus.store.strategies import Judgement, Searched

MATCHED_ROWS = 10_000  # of each space among which matches are sought if there are few pairs


class Queries(NamedTuple):
    """Queries by both models, and what is relevant to them.

    Attributes:
      old: raw vectors of the old model.
      new: raw vectors of the new model, of the same queries.
      relevant: (query, row of the old vectors) for each document that is relevant to a query.
    """

    old: Float[AnyArray, "q d_old"]
    new: Float[AnyArray, "q d_new"]
    relevant: Int[np.ndarray, "r 2"]


def migrate(
    old: Float[AnyArray, "n d_old"],
    new: Float[AnyArray, "m d_new"],
    pairs: Annotated[Unchecked, "p 2"] | None = None,
    *,
    old_model_runs: bool = True,
    queries: Queries | None = None,
    random_seed: int = 0,
    progress: bool = False,
) -> Migration:
    """Says what to do when the embedding model of a store changes.

    Both spaces are normalised (unit length, centred, unit length), and orthogonal, least-squares
    and ridge maps are compared on held-out pairs (`remapping.choose`). From the same pairs follows
    what the lists of the mapped store and of the old model keep of the ten nearest rows that a
    re-embedded store would have (`remapping.estimated`), and from these shares the cheapest way
    that keeps enough (`remapping.advise`):

        result = isthmus.migrate(old, new, pairs)
        result.advice, result.estimates.by_map["within_100"]
        mapped = result.aligner.apply(old)  # the store, up to length
        queries = result.aligner.normalise_target(new_queries)

    Args:
      old: raw vectors of the whole store by the old model.
      new: raw vectors of some items by the new model.
      pairs: (old row, new row) of items that both have embedded, the more the better; fewer than
        `remapping.MANY_PAIRS` or None: more are sought among the first rows of both.
      old_model_runs: whether queries can still be embedded by the old model.
      queries: whose relevant documents are known. Strategies are judged among the paired documents
        alone, because the new model's vectors of others are not there.
      random_seed: of the search for pairs.
      progress: whether the search shows progress bars.

    Raises:
      UserError: vectors or pairs that `common.alignment.fit` refuses, no relevant document among
        the paired ones, or too few pairs.
    """
    known = np.zeros((0, 2), int) if pairs is None else np.asarray(pairs)
    matched = None
    if len(known) < remapping.MANY_PAIRS:
        matched = align.discover(
            old, new, known, rows=MATCHED_ROWS, ordered=False, random_seed=random_seed,
            progress=progress, names=("old", "new"),
        )  # fmt: skip
        known = matched.anchors
    else:
        alignment.normalised(old, new, known, ("old", "new"))
        known = known[one_to_one(known)]
    paired = np.asarray(old)[known[:, 0]], np.asarray(new)[known[:, 1]]
    choice = remapping.choose(*paired, SETTINGS)
    rows = choice.aligner.normalise_source(old[: align.LEARNING_ROWS])
    aligner = dataclasses.replace(choice.aligner, profile=likeness.profile(rows))
    stores = unit(jnp.asarray(old, jnp.float32)), unit(aligner.apply(old))
    estimates = remapping.estimates_of(choice, *paired, known[:, 0], *stores, SETTINGS)
    judged = None if queries is None else _judged(queries, known, paired, choice)
    advice = remapping.advise(estimates, old_model_runs, SETTINGS)
    if judged and _by_strategy(judged, "re-embedded").gain_high <= 0 and old_model_runs:
        advice = Advice("old model")  # the new model is no better
    search = matched and Search(matched.probability, matched.failed)
    return Migration(advice, aligner, choice, estimates, known, search, judged)


def _by_strategy(judged: list[Judgement], strategy: str) -> Judgement:
    return next(one for one in judged if one.ranking.strategy == strategy)


def _judged(queries: Queries, pairs, paired, choice: Choice) -> list[Judgement]:
    """All strategies among the held-out pairs, each mapped by a map that was not fitted to it."""
    row_of = {old_row: i for i, old_row in enumerate(pairs[choice.rows, 0].tolist())}
    relevant = [(q, row_of[d]) for q, d in np.asarray(queries.relevant).tolist() if d in row_of]
    if not relevant:
        raise UserError(
            "No relevant document of a query is among the paired ones: embed some of them by the "
            "new model, and give them as pairs."
        )
    documents = [unit(jnp.asarray(x[choice.rows], jnp.float32)) for x in paired]
    asked = [unit(jnp.asarray(x, jnp.float32)) for x in (queries.old, queries.new)]
    normalised = unit(choice.aligner.normalise_target(queries.new))
    lists = strategies.rankings(
        Searched(asked[0], documents[0]),
        Searched(asked[1], documents[1]),
        Searched(normalised, choice.mapped),
    )
    return strategies.judge(lists, np.array(relevant))
