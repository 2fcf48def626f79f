"""Published numbers of zero-shot stitching: Tables 2 and 6, the same in both arXiv versions.

Amazon reviews in English (en) and Spanish (es), five classes, weighted F1 and MAE of the class,
five random seeds. The anchors of English are sought, those of Spanish given (A.2): English has the
place of the optimised space here. Table 2 is the part of Table 6 between the languages.
"""

DATASET = "Amazon reviews en / es, 5 classes"

# line -> (decoder, encoder) -> metric -> (mean, std)
_TABLE_6 = {
    "gt": {
        ("en", "en"): {"f1": (0.64, 0.01), "mae": (0.43, 0.01)},
        ("en", "es"): {"f1": (0.51, 0.01), "mae": (0.67, 0.02)},
        ("es", "en"): {"f1": (0.50, 0.02), "mae": (0.72, 0.04)},
        ("es", "es"): {"f1": (0.60, 0.01), "mae": (0.45, 0.01)},
    },
    "seed": {
        ("en", "en"): {"f1": (0.50, 0.01), "mae": (0.69, 0.01)},
        ("en", "es"): {"f1": (0.44, 0.01), "mae": (0.80, 0.01)},
        ("es", "en"): {"f1": (0.41, 0.01), "mae": (0.92, 0.02)},
        ("es", "es"): {"f1": (0.48, 0.01), "mae": (0.70, 0.01)},
    },
    "ao": {
        ("en", "en"): {"f1": (0.62, 0.01), "mae": (0.44, 0.01)},
        ("en", "es"): {"f1": (0.48, 0.01), "mae": (0.70, 0.02)},
        ("es", "en"): {"f1": (0.46, 0.01), "mae": (0.76, 0.02)},
        ("es", "es"): {"f1": (0.61, 0.01), "mae": (0.44, 0.01)},
    },
}
# As in paper.py: the paper's one AO line stands beside the published algorithm and beside ours.
_LINES = {"gt": "gt", "seed": "seed", "algorithm1": "ao", "bootstrap": "ao"}


def value(
    method: str, decoder_optimised: bool, encoder_optimised: bool, metric: str
) -> tuple[float, float] | None:
    """The paper's mean and standard deviation, or None where it has none.

    Args:
      method: a name of config.methods.
      decoder_optimised: whether the head was trained on the space whose anchors are sought.
      encoder_optimised: whether the test vectors are of that space.
      metric: as in results.json.
    """
    if method not in _LINES:
        return None
    language = {True: "en", False: "es"}
    lines = _TABLE_6[_LINES[method]]
    return lines[language[decoder_optimised], language[encoder_optimised]].get(metric)
