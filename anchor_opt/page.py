"""What the documentation shows of the recorded results (`python -m docs.render`)."""

import importlib
from collections.abc import Sequence

from matplotlib.figure import Figure

from anchor_opt.reports import (
    ablation,
    boundary,
    classes,
    halves,
    judged,
    new_model,
    overlap,
    phase,
    retrieval,
    searches,
    spaces,
    stitching,
)
from common.run.records import Headline, Record


def _headline(
    measure: str,
    record: str,
    metric: str,
    source: str,
    target: str,
    method: str = "bootstrap",
    **labels,
):
    row = {"metric": metric, "source": source, "target": target, "anchors": "continuous"}
    row |= {"representation": "relative", "optimised": target} | labels
    return Headline(
        measure=measure,
        record=f"anchor_opt/{record}",
        row=row | {"method": method},
        reference=row | {"method": "lstsq_truth"},
    )


NO_PAIRS = {"metric": "mrr", "representation": "relative"}
HALVES = {"metric": "top_1", "source": "wordllama_sentences"}
ENCODERS = HALVES | {"source": "minilm_sentences"}
JUDGED = {"metric": "ndcg_10", "dataset": "minilm -> mpnet", "num_pairs": 300}
JUDGED |= {"collection": "articles"}
NEW_MODEL = {"metric": "recall_10", "method": "chosen"}
NEW_MODEL |= {"dataset": "wordllama_sentences -> minilm_sentences"}
SENTENCES = ("retrieval_mpnet_20000", "mrr", "minilm_sentences", "mpnet_sentences")
FEWER_SENTENCES = ("retrieval_mpnet", *SENTENCES[1:])
WORDS = ("retrieval_glove100_20000", "mrr", "glove100", "word2vec")
FEWER_WORDS = ("retrieval_word2vec", "mrr", "glove", "word2vec")
IMAGES = ("vision_20000", "mrr", "efficientnet_lite0", "efficientnet_lite2")
STARS = ("stitching_stars", "f1", "glove", "word2vec")  # encoder of the texts, of the head
HEAD = "published"
PRINTED = "the same, Algorithm 1 as printed"
SMALL_START = "the same, Algorithm 1 with a small start"
TABLE_5 = "anchors of MiniLM sought (Table 5), bootstrap"
DISCRETE = "the same, items nearest to the anchors (line 10)"
HEADLINES = (
    _headline("MRR from 15 known pairs, 20,000 sentences, bootstrap", *SENTENCES),
    _headline(PRINTED, *SENTENCES, method="algorithm1_printed"),
    Headline(
        measure="MRR without known pairs, 2,500 sentences in unknown order, bootstrap",
        record="anchor_opt/no_pairs_mpnet",
        row=NO_PAIRS | {"method": "bootstrap"},
        reference=NO_PAIRS | {"method": "lstsq_truth"},
    ),
    Headline(
        measure="nDCG@10, 50 candidates of MiniLM in MPNet's order; right: all embedded again",
        record="anchor_opt/judged",
        row=JUDGED | {"method": "old candidates", "candidates": 50},
        reference=JUDGED | {"method": "re-embedded"},
    ),
    Headline(
        measure="the same, MiniLM alone",
        record="anchor_opt/judged",
        row=JUDGED | {"method": "old model"},
    ),
    _headline(
        "MRR, 20,000 sentences, Algorithm 1 with a small start", *SENTENCES, method="algorithm1"
    ),
    _headline(TABLE_5, *SENTENCES, optimised="minilm_sentences"),
    _headline(PRINTED, *SENTENCES, method="algorithm1_printed", optimised="minilm_sentences"),
    _headline("MRR from 15 known pairs, 4,000 sentences, bootstrap", *FEWER_SENTENCES),
    _headline(PRINTED, *FEWER_SENTENCES, method="algorithm1_printed"),
    _headline(TABLE_5, *FEWER_SENTENCES, optimised="minilm_sentences"),
    _headline(PRINTED, *FEWER_SENTENCES, method="algorithm1_printed", optimised="minilm_sentences"),
    _headline("MRR from 15 known pairs, 20,000 words, bootstrap", *WORDS),
    _headline(PRINTED, *WORDS, method="algorithm1_printed"),
    _headline(SMALL_START, *WORDS, method="algorithm1"),
    _headline("MRR from 15 known pairs, 4,000 words, bootstrap", *FEWER_WORDS),
    _headline(PRINTED, *FEWER_WORDS, method="algorithm1_printed"),
    _headline(SMALL_START, *FEWER_WORDS, method="algorithm1"),
    _headline("anchors of GloVe sought (Table 5), bootstrap", *FEWER_WORDS, optimised="glove"),
    _headline(PRINTED, *FEWER_WORDS, method="algorithm1_printed", optimised="glove"),
    _headline(
        "MRR, all 14,689 words that both have, bootstrap",
        "retrieval_14689",
        "mrr",
        "glove",
        "word2vec",
    ),
    Headline(
        measure="MRR without known pairs, 2,500 words in unknown order, bootstrap",
        record="anchor_opt/no_pairs",
        row=NO_PAIRS | {"method": "bootstrap", "dataset": "glove -> word2vec"},
        reference=NO_PAIRS | {"method": "lstsq_truth", "dataset": "glove -> word2vec"},
    ),
    Headline(
        measure="P@1 without known pairs through a third space, 2,500 words",
        record="anchor_opt/bridge",
        row={"metric": "p_at_1", "method": "bridge", "dataset": "glove -> minilm_input"},
    ),
    Headline(
        measure="top-1 of 2,000 new sentences, learned from disjoint halves of 100,000",
        record="anchor_opt/halves",
        row=HALVES | {"method": "disjoint"},
        reference=HALVES | {"method": halves.TRUTH},
    ),
    Headline(
        measure="the same between strong encoders, from disjoint halves of 40,000",
        record="anchor_opt/halves_mpnet",
        row=ENCODERS | {"method": "disjoint", "num_items": 20_000},
        reference=ENCODERS | {"method": halves.TRUTH, "num_items": 20_000},
    ),
    Headline(
        measure="the same, from disjoint halves of 4,000",
        record="anchor_opt/halves_mpnet",
        row=ENCODERS | {"method": "disjoint", "num_items": 2_000},
        reference=ENCODERS | {"method": halves.TRUTH, "num_items": 2_000},
    ),
    Headline(
        measure="recall@10 of 100,000 vectors mapped to a new model, no known pairs",
        record="anchor_opt/new_model",
        row=NEW_MODEL | {"num_pairs": 0},
        reference=NEW_MODEL | {"num_pairs": 100_000},
    ),
    _headline("F1 of zero-shot stitching, one to five stars, head on Word2Vec", *STARS, head=HEAD),
    _headline("the same, mean absolute error", "stitching_stars", "mae", *STARS[2:], head=HEAD),
    _headline("MRR across two image encoders, bootstrap", *IMAGES),
    _headline(PRINTED, *IMAGES, method="algorithm1_printed"),
    _headline(DISCRETE, *IMAGES, method="algorithm1_printed", anchors="discrete"),
    _headline("MRR across two small ViTs", "vision_small", "mrr", "vit_wide", "vit_narrow"),
)


def figures(record: Record) -> dict[str, Figure]:
    """Name -> figure, of those that the rows of a recorded result suffice for.

    The figures of retrieval need the vectors and the anchors, and the steps that were logged.
    """
    rows, values = record.rows, record.config
    match values["experiment"]:
        case "ablation":
            return {"ablation": ablation.figure(rows)}
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
        case "stitching":
            return stitching.figures(rows)
    return {}


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown of a recorded result."""
    rows, failed, values = record.rows, record.failed, record.config
    match values["experiment"]:
        case "judged":
            return judged.overview(rows)
        case "new_model":
            return new_model.tables(rows)
        case "spaces":
            return {"Pairs of spaces": spaces.table(rows)}
        case "stitching":
            return stitching.tables(rows, num_anchors=values["num_anchors"], failed=failed)
        case "retrieval" | "vision":
            return retrieval.tables(rows, num_anchors=values["num_anchors"], failed=failed)
    return importlib.import_module(f"anchor_opt.reports.{values['experiment']}").tables(
        rows, failed
    )


def summaries(records: Sequence[Record]) -> dict[str, str]:
    """Title -> Markdown of what all recorded results of the paper show together."""
    return {
        "searches": searches.of_all_records(records),
        "calibration": searches.calibration(records),
        "foretold": spaces.foretold(records),
    }
