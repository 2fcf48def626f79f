"""Tables of `sentences`."""

from common.run.records import Record
from common.run.results import frame, pivot
from embed_match.reports.shared import METRICS, PAIR, TITLES


def tables(record: Record) -> dict[str, str]:
    """Title -> table."""
    rows = frame(record.rows)
    runs = f"mean ± std over {rows.num_runs[0]} random subsets of the texts"
    lines = {"dataset": "Texts"} | PAIR
    pairs = rows[rows.metric.isin([*METRICS, "ot_entropic"])]
    scores = rows[rows.metric.isin(["accuracy", "gain"])]
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
