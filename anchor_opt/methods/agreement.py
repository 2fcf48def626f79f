"""Whether self-learning has succeeded, decided without labels: chance-corrected agreement.

Right maps find most matches again that they were not fitted to. But the fewer dimensions there are,
the better maps fit wrong matches, too. The agreement (`self_learning.agreement`) is therefore
compared with its chance baseline, that of self-learning from wrong pairs:

    (agreement - chance agreement) / (1 - chance agreement)

The result is the best of several initializations, and so the baseline is the best of as many
searches from wrong pairs.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import ArrayLike, Float
from scipy.special import expit

# Of the logistic regression of success on the corrected agreement, on 45 development problems, see
# docs/results/anchor_opt/constants.md.
STEEPNESS = 27.0


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
