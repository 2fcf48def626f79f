"""What the documentation shows of this paper's kept runs (`python -m docs.render`)."""

from matplotlib.figure import Figure

from common.run.records import Headline, Record
from lpl.reports import constants, nli, word_alignment

TABLES = {
    "word_alignment": word_alignment.tables,
    "nli": nli.tables,
    "constants": constants.tables,
}
FIGURES = {"word_alignment": word_alignment.figures, "nli": nli.figures}
FINNISH = {"target": "finnish", "num_pairs": 2_500, "retrieval": "csls"}
# The number of pairs of which the paper prints a gain, and the data set nearest to its task.
INFERENCE = {"metric": "accuracy", "test": "mismatched", "num_pairs": 1_000}
HEADLINES = (
    Headline(
        "word translation to Finnish, P@1, MSE + LPL by CSLS",
        "lpl/word_alignment",
        FINNISH | {"method": "lpa_mse", "metric": "p_at_1"},
    ),
    Headline(
        "the same, gain by LPL over MSE",
        "lpl/word_alignment",
        FINNISH | {"metric": "gain"},
    ),
    Headline(
        "inference from 1,000 pairs (Figure 3), accuracy, baseline",
        "lpl/nli",
        INFERENCE | {"method": "baseline"},
    ),
    Headline(
        "the same, baseline + MSE + LPL",
        "lpl/nli",
        INFERENCE | {"method": "mse_lpl"},
    ),
)


def figures(record: Record) -> dict[str, Figure]:
    """Name -> figure, of those that the rows of a recorded result suffice for: all."""
    draw = FIGURES.get(record.config["experiment"])
    return draw(record.rows) if draw else {}


def tables(record: Record) -> dict[str, str]:
    """The tables of a kept run by title."""
    return TABLES[record.config["experiment"]](record.rows)
