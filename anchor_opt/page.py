"""What the documentation shows of the recorded results (`python -m docs.render`)."""

from matplotlib.figure import Figure

from anchor_opt.reports import ablation, retrieval, stitching
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
    match record.config["experiment"]:
        case "ablation":
            return {"ablation": ablation.figure(record.rows)}
        case "stitching":
            return stitching.figures(record.rows)
    return {}


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown of a recorded result."""
    rows, failed, num_anchors = record.rows, record.failed, record.config["num_anchors"]
    match record.config["experiment"]:
        case "ablation":
            return ablation.tables(rows, failed)
        case "stitching":
            return stitching.tables(rows, num_anchors=num_anchors, failed=failed)
    return retrieval.tables(rows, num_anchors=num_anchors, failed=failed)
