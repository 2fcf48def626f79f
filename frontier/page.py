"""What the documentation shows of the recorded results (`python -m docs.render`)."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from common.run.records import Headline, Record
from frontier.reports import (
    boundary,
    bridge,
    classes,
    halves,
    judged,
    new_model,
    overlap,
    phase,
    searches,
    spaces,
)

NO_PAIRS = {"metric": "mrr", "representation": "relative"}
HALVES = {"metric": "top_1", "source": "wordllama_sentences"}
ENCODERS = HALVES | {"source": "minilm_sentences"}
JUDGED = {"metric": "ndcg_10", "dataset": "minilm -> mpnet", "num_pairs": 300}
JUDGED |= {"collection": "articles"}
NEW_MODEL = {"metric": "recall_10", "method": "chosen"}
NEW_MODEL |= {"dataset": "wordllama_sentences -> minilm_sentences"}
HEADLINES = (
    Headline(
        measure="MRR without known pairs, 2,500 sentences in unknown order, bootstrap",
        record="frontier/no_pairs_mpnet",
        row=NO_PAIRS | {"method": "bootstrap"},
        reference=NO_PAIRS | {"method": "lstsq_truth"},
    ),
    Headline(
        measure="nDCG@10, 50 candidates of MiniLM in MPNet's order; right: all embedded again",
        record="frontier/judged",
        row=JUDGED | {"method": "old candidates", "candidates": 50},
        reference=JUDGED | {"method": "re-embedded"},
    ),
    Headline(
        measure="the same, MiniLM alone",
        record="frontier/judged",
        row=JUDGED | {"method": "old model"},
    ),
    Headline(
        measure="MRR without known pairs, 2,500 words in unknown order, bootstrap",
        record="frontier/no_pairs",
        row=NO_PAIRS | {"method": "bootstrap", "dataset": "glove -> word2vec"},
        reference=NO_PAIRS | {"method": "lstsq_truth", "dataset": "glove -> word2vec"},
    ),
    Headline(
        measure="P@1 without known pairs through a third space, 2,500 words",
        record="frontier/bridge",
        row={"metric": "p_at_1", "method": "bridge", "dataset": "glove -> minilm_input"},
    ),
    Headline(
        measure="top-1 of 2,000 new sentences, learned from disjoint halves of 100,000",
        record="frontier/halves",
        row=HALVES | {"method": "disjoint"},
        reference=HALVES | {"method": halves.TRUTH},
    ),
    Headline(
        measure="the same between strong encoders, from disjoint halves of 40,000",
        record="frontier/halves_mpnet",
        row=ENCODERS | {"method": "disjoint", "num_items": 20_000},
        reference=ENCODERS | {"method": halves.TRUTH, "num_items": 20_000},
    ),
    Headline(
        measure="the same, from disjoint halves of 4,000",
        record="frontier/halves_mpnet",
        row=ENCODERS | {"method": "disjoint", "num_items": 2_000},
        reference=ENCODERS | {"method": halves.TRUTH, "num_items": 2_000},
    ),
    Headline(
        measure="recall@10 of 100,000 vectors mapped to a new model, no known pairs",
        record="frontier/new_model",
        row=NEW_MODEL | {"num_pairs": 0},
        reference=NEW_MODEL | {"num_pairs": 100_000},
    ),
)


def figures(record: Record) -> dict[str, Figure]:
    """Name -> figure, of those that the rows of a recorded result suffice for: all."""
    rows, values = record.rows, record.config
    match values["experiment"]:
        case "boundary":
            return {"boundary": boundary.figure(rows)}
        case "classes":
            return {"mrr": classes.figure(rows)}
        case "halves":
            return halves.figures(rows)
        case "judged":
            return judged.figures(rows)
        case "overlap":
            min_gain = values["bootstrap"]["min_gain"]
            return overlap.figures(rows, record.failed, values["k"], min_gain)
        case "phase":
            return {"phase": phase.figure(rows)}
        case "spaces":
            return {"cka": spaces.figure(rows)}
    return {}


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown of a recorded result."""
    rows, failed = record.rows, record.failed
    match record.config["experiment"]:
        case "judged":
            return judged.overview(rows)
        case "new_model":
            return new_model.tables(rows)
        case "spaces":
            return {"Pairs of spaces": spaces.table(rows)}
        case name:
            reports = {"boundary": boundary, "bridge": bridge, "classes": classes}
            reports |= {"halves": halves, "overlap": overlap, "phase": phase}
            return reports[name].tables(rows, failed)


def summaries(records: Sequence[Record]) -> dict[str, str]:
    """Title -> Markdown of what all records show together, of the anchor paper's searches too."""
    return {
        "searches": searches.of_all_records(records),
        "calibration": searches.calibration(records),
        "foretold": spaces.foretold(records),
    }
