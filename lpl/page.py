"""What the documentation shows of this paper's kept runs (`python -m docs.render`)."""

from common.records import Headline, Record
from lpl import nli_report, word_alignment_report

TABLES = {"word_alignment": word_alignment_report.tables, "nli": nli_report.tables}
LPL_BY_CSLS = {"method": "lpa_mse", "retrieval": "csls", "metric": "p_at_1"}
HEADLINES = (
    Headline(
        "word translation, P@1, LPL and MSE by CSLS",
        "lpl/word_alignment",
        LPL_BY_CSLS | {"num_pairs": 3_000, "source": "glove"},
    ),
)


def tables(record: Record) -> dict[str, str]:
    """The tables of a kept run by title."""
    return TABLES[record.config["experiment"]](record.rows)
