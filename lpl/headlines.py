"""The main results, for RESULTS.md; the first two are in the README."""

from common.run.records import Headline

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
