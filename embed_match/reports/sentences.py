"""Tables of `sentences`."""

from collections.abc import Sequence

from common.run.results import Row, pivot
from embed_match.reports.pairs import METRICS, PAIR, TITLES


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Tables of the experiment by title."""
    runs = f"mean ± std over {rows[0].num_runs} random subsets of the texts"
    lines = {"dataset": "Texts"} | PAIR
    pairs = [row for row in rows if row.metric in (*METRICS, "ot_entropic")]
    scores = [row for row in rows if row.metric in ("accuracy", "gain")]
    return {
        "Sentence encoders after the optimal rotation": (
            "Unit norm. The rotation is fitted on the training texts, and the measures are those "
            f"of the test texts, {runs}.\n\n"
            + pivot(pairs, lines=lines | {"num_items": "Number"}, titles=TITLES)
        ),
        "Ensembles of sentence encoders": (
            f"Logistic regression, {runs}. Gain: accuracy above that of the better member. The "
            "rotation before averaging is fitted on the training texts.\n\n"
            + pivot(scores, lines=lines | {"method": "Ensemble"})
        ),
    }
