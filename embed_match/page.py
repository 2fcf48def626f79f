"""What the documentation shows of this paper's kept runs (`python -m docs.render`)."""

from ml_collections import ConfigDict

from common.run.records import Headline, Record
from embed_match import experiments

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


def tables(record: Record) -> dict[str, str]:
    """The tables of a kept run by title."""
    return experiments.tables(ConfigDict(record.config), record.rows)
