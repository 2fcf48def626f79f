"""Published numbers of Table 1, vocabulary 5,000: alignment between pairs of embeddings."""

METRICS = {
    "l2": "Ave. l2 distance",
    "p_at_1": "Nearest, top 1",
    "p_at_5": "Nearest, top 5",
    "ot": "Transport",
}
TABLE_1 = {
    ("C1", "C2"): (0.309, 1.0, 1.0, 1.0),
    ("G1", "G2"): (0.623, 0.634, 0.8769, 1.0),
    ("C1", "G1"): (0.965, 0.4302, 0.5712, 0.8042),
    ("LSTM", "C1"): (0.937, 0.2284, 0.4388, 0.6328),
}


def value(a: str, b: str, metric: str) -> float | None:
    """The poster's number, or None where it has none."""
    row = dict(zip(METRICS, TABLE_1.get((a, b), ()), strict=False))
    return row.get(metric)
