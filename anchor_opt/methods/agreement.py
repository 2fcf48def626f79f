"""Whether self-learning has succeeded, decided without labels: chance-corrected agreement.

Right maps find most matches again that they were not fitted to. But the fewer dimensions there are,
the better maps fit wrong matches, too. The agreement is therefore compared with its chance
baseline, that of self-learning from wrong pairs:

    (agreement - chance agreement) / (1 - chance agreement)

The result is the best of several initializations, and so the baseline is the best of as many
searches from wrong pairs.
"""

from collections.abc import Iterable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float
from scipy.special import expit

from anchor_opt.methods import self_learning
from anchor_opt.methods.self_learning import Data, Settings, State
from common import csls, multi_step
from common.csls import Matches

# Of the logistic regression of success on the corrected agreement, on 45 development problems, see
# docs/results/anchor_opt/constants.md.
STEEPNESS = 27.0


@partial(jax.jit, static_argnames="settings")
def agreement(state: State, data: Data, settings: Settings) -> Float[Array, ""]:
    """Fraction of the mutual matches that are found again without them, by two-fold validation.

    The mutual matches are divided at random into two halves. Maps are fitted to each half alone,
    as in `self_learning.step`, and match the rows of the other half. Right maps find most of the
    matches again; maps that fit nothing but their own matches do not generalise.
    """
    matches = self_learning.current_matches(state, data, settings.neighbours)
    half = jax.random.bernoulli(jax.random.key(0), shape=matches.mutual.shape)
    again = jnp.where(
        half,
        _matched_again(matches, ~half, data, settings),
        _matched_again(matches, half, data, settings),
    )
    return (again & matches.mutual).sum() / jnp.maximum(matches.mutual.sum(), 1)


def _matched_again(
    matches: Matches, half: Array, data: Data, settings: Settings
) -> Bool[Array, " n"]:
    """Whether maps that are fitted to the mutual matches of a half match each row as before."""
    fitted_to = (matches.mutual & half)[:, None]
    partners = jnp.where(fitted_to, data.target[matches.to_target], 0.0)
    maps = multi_step.fit_covariance(data.source.T @ partners, settings.reweight)
    spaces = self_learning.coordinates(maps, data)
    again = csls.matches(*spaces, neighbours=settings.neighbours)
    return again.to_target == matches.to_target


def corrected_for_chance(agreement: float, chance_agreement: float) -> float:
    """The agreement, scaled so that the chance baseline is 0 and full agreement 1."""
    return (agreement - chance_agreement) / max(1 - chance_agreement, 1e-6)


def chance_agreement(agreement: float, chance_searches: Iterable[float], threshold: float) -> float:
    """The highest agreement of searches from wrong pairs.

    They are made one by one, and only while the agreement that they correct is at the threshold or
    above: a higher baseline could not turn a failure into a success.
    """
    highest = 0.0
    for chance in chance_searches:
        highest = max(highest, chance)
        if corrected_for_chance(agreement, highest) < threshold:
            break
    return highest


def success_probability(
    corrected_agreement: Float[ArrayLike, "..."], threshold: float
) -> Float[np.ndarray, "..."] | np.floating:
    """Probability that self-learning of this agreement has succeeded; one half at the threshold.

    Success: its map finds at least half of the items that the map fitted to all true pairs finds.
    """
    return expit(STEEPNESS * (np.asarray(corrected_agreement) - threshold))
