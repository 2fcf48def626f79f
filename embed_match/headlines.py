"""The main results, for RESULTS.md; the first two are in the README."""

from common.run.records import Headline

MATCH = "embed_match/match"
CBOW = {"source": "C1", "target": "C2", "metric": "l2"}
CBOW_GLOVE = {"source": "C1", "target": "G1"}
HEADLINES = (
    Headline("two CBOW, l2 after rotation", MATCH, CBOW),
    Headline("CBOW and GloVe, words matched by transport", MATCH, CBOW_GLOVE | {"metric": "ot"}),
    Headline("the same, by nearest neighbours, P@1", MATCH, CBOW_GLOVE | {"metric": "p_at_1"}),
    Headline(
        "LSTM and CBOW, by nearest neighbours, P@1",
        MATCH,
        {"source": "LSTM", "target": "C1", "metric": "p_at_1"},
    ),
)
