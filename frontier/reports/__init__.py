"""Tables and figures of the experiments, from their rows, and of all records together."""

from collections.abc import Sequence

from common.run.records import Record
from frontier.reports import searches, spaces


def summaries(records: Sequence[Record]) -> dict[str, str]:
    """Title -> Markdown of what all records show together, of the anchor paper's searches too."""
    return {
        "searches": searches.of_all_records(records),
        "calibration": searches.calibration(records),
        "foretold": spaces.foretold(records),
    }
