"""Published numbers of Table 1a: accuracy (P@1, per cent) on the dictionaries of Dinu et al."""

LANGUAGES = ("EN-IT", "EN-DE", "EN-FI", "EN-ES")

# (method, retrieval) -> the row. All methods but the last two trained on all 5,000 pairs.
TABLE_1A = {
    ("shigeto_2015", "nn"): (41.53, 43.07, 31.04, 33.73),
    ("artetxe_2016", "nn"): (39.27, 41.87, 30.62, 31.40),
    ("smith_2017", "inverted_softmax"): (41.53, 43.07, 31.04, 33.73),
    ("artetxe_2018", "nn"): (44.00, 44.27, 32.94, 36.53),
    ("artetxe_2018", "inverted_softmax"): (45.27, 44.13, 32.94, 36.60),
    ("mse_sgd", "nn"): (39.67, 45.47, 29.42, 35.3),
    ("lpa_mse", "csls"): (43.33, 46.07, 33.50, 35.13),
}
# Rows whose numbers can't be right, with the reason.
DOUBTFUL = {
    ("smith_2017", "inverted_softmax"): (
        "the paper's row of Smith 2017 repeats that of Shigeto 2015 in all four columns; others "
        "give 43.1 to 44.5 / 43.33 / 29.42 / 35.13 for it"
    )
}


def value(method: str, retrieval: str) -> dict[str, float] | None:
    """The paper's row by language pair, or None where it has none."""
    row = TABLE_1A.get((method, retrieval))
    return dict(zip(LANGUAGES, row, strict=True)) if row else None


# Section 1: LPL on SNLI from 1,000 pairs, the gain over the baseline and its share of the baseline.
SNLI_GAIN = 0.089
SNLI_RELATIVE = 0.193
# (set, method, training pairs) -> accuracy. Figures 3 to 5 print no numbers; these follow from the
# two above.
NLI = {
    ("SNLI", "baseline", 1_000): SNLI_GAIN / SNLI_RELATIVE,
    ("SNLI", "mse_lpl", 1_000): SNLI_GAIN / SNLI_RELATIVE + SNLI_GAIN,
}
