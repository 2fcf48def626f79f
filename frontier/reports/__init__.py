"""Tables and figures of the experiments, from their rows, and of all records together."""

from frontier.reports import searches, spaces

# Title -> what all records show together, of the anchor paper's searches too.
SUMMARIES = {
    "searches": searches.of_all_records,
    "calibration": searches.calibration,
    "foretold": spaces.foretold,
}
