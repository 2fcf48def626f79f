"""What the documentation shows of this paper's kept runs (`python -m docs.render`)."""

from matplotlib.figure import Figure

from common.run.records import Headline, Record
from embed_match.compare import Transport
from embed_match.reports import correlate, ensemble, match, sentences, texts

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


def figures(record: Record) -> dict[str, Figure]:
    """Name -> figure, of those that the rows of a recorded result suffice for."""
    config, rows = record.config, record.rows
    models = config.get("models", {})
    match config["experiment"]:
        case "correlate":
            return correlate.figures(rows, list(models))
        case "ensemble":
            return ensemble.figures(rows)
        case "match":
            return match.figures(rows, {name: model["kind"] for name, model in models.items()})
    return {}


def tables(record: Record) -> dict[str, str]:
    """The tables of a kept run by title."""
    config, rows = record.config, record.rows
    if config["experiment"] == "sentences":
        return sentences.tables(rows)
    text = texts.trained_on(*(config[name] for name in ("dataset", "num_texts", "num_words")))
    if config["experiment"] == "match":
        values = {field: config[field] for field in ("epsilon", "max_iterations", "tolerance")}
        return match.tables(rows, text, Transport(**values))
    report = {"correlate": correlate, "ensemble": ensemble}[config["experiment"]]
    return report.tables(rows, text)
