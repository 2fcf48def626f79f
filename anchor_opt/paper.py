"""Published numbers (arXiv version 1): Tables 1, 4 and 5, FastText (FT) and Word2Vec (W2V).

20,000 words, K = 10, five random seeds, relative representations. FT is the source role here, W2V
the target role. Table 4 optimises the anchors of W2V, Table 5 those of FT; Table 1 is the part of
Table 4 between different spaces.
"""

DATASET = "FastText / Word2Vec, 20,000 words"

# metric -> (mean, std) of a line
_SAME = {"jaccard": (1.00, 0.00), "mrr": (1.00, 0.00), "cosine": (1.00, 0.00)}


def _line(jaccard, mrr, cosine):
    return {"jaccard": jaccard, "mrr": mrr, "cosine": cosine}


_GT = (
    _line((0.34, 0.01), (0.94, 0.00), (0.86, 0.00)),
    _line((0.39, 0.00), (0.98, 0.00), (0.86, 0.00)),
)
_SEED = (
    _line((0.06, 0.01), (0.11, 0.01), (0.85, 0.01)),
    _line((0.06, 0.01), (0.15, 0.02), (0.85, 0.01)),
)
# (source to target, target to source) of each line of Table 4 ("target") and Table 5 ("source").
_TABLES = {
    ("target", "gt"): _GT,
    ("target", "seed"): _SEED,
    ("target", "ao"): (
        _line((0.52, 0.00), (0.99, 0.00), (0.94, 0.00)),
        _line((0.50, 0.01), (0.99, 0.00), (0.94, 0.00)),
    ),
    ("source", "gt"): _GT,
    ("source", "seed"): _SEED,
    ("source", "ao"): (
        _line((0.49, 0.00), (0.98, 0.00), (0.93, 0.00)),
        _line((0.50, 0.00), (0.99, 0.00), (0.93, 0.00)),
    ),
}
# The paper has one AO line; the faithful algorithm and the one that works are both set beside it.
_LINES = {"gt": "gt", "seed": "seed", "algorithm1": "ao", "bootstrap": "ao"}


def value(
    method: str, optimised: str, source: str, target: str, metric: str
) -> tuple[float, float] | None:
    """The paper's mean and standard deviation, or None where it has none.

    Args:
      method: a name of config.methods.
      optimised: role of the space whose anchors are optimised, 'source' or 'target'.
      source: role of the space that queries.
      target: role of the space that is searched.
      metric: as in results.json.
    """
    if method not in _LINES:
        return None
    if source == target:
        return _SAME.get(metric)
    lines = _TABLES[optimised, _LINES[method]]
    return lines[0 if source == "source" else 1].get(metric)
