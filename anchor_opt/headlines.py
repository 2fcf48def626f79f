"""The main results, for RESULTS.md; the first two are in the README.

Of several pairs of spaces of one kind the one with the median is shown. Where random runs succeed
or fail, it is said how many succeed: have at least half of the MRR of `gt`.
"""

import itertools

from common.run.records import Headline

OURS = "bootstrap", "continuous", "self-learning (ours)"
PRINTED = "algorithm1_printed", "discrete", "Algorithm 1 as printed"
WITHOUT = "algorithm1_printed", "continuous", "Algorithm 1 without line 10"
SMALL = "algorithm1", "continuous", "Algorithm 1 with a small start"

# What is measured, and where it is not the MRR in the space that is searched.
WORDS = "MRR from 15 known pairs, 20,000 words, median of 3 pairs of spaces", {}
FEWER = "MRR, 4,000 words, median of 5 pairs of spaces", {}
GLOVE_SOUGHT = "MRR, 4,000 words, anchors of GloVe sought (Table 5)", {"optimised": "glove"}
SENTENCES = "MRR, 20,000 sentences, siblings", {}
MINILM_SOUGHT = (
    "MRR, 20,000 sentences, anchors of MiniLM sought (Table 5)",
    {"optimised": "minilm_sentences"},
)
FEWER_SENTENCES = "MRR, 4,000 sentences, siblings", {}
STARS = (
    "F1 of zero-shot stitching, one to five stars, median of 5 pairs of encoders",
    {"metric": "f1", "head": "published"},
)
ERROR = (
    "mean absolute error of the stars, median of 5 pairs of encoders",
    {"metric": "mae", "head": "published"},
)
SPANISH = (
    "F1 of zero-shot stitching, a head on English messages, tested on Spanish ones",
    {"metric": "f1", "head": "published"},
)
IMAGES = "MRR across two image encoders", {}
LAYERS, LITE = ("minilm", "minilm_input"), ("efficientnet_lite0", "efficientnet_lite2")
GLOVE, GLOVE100 = ("glove", "word2vec"), ("glove100", "word2vec")
SIBLINGS = "minilm_sentences", "mpnet_sentences"
MESSAGES = "use_messages_es", "minilm_messages_en"


def _headline(
    measured: tuple[str, dict],
    of: tuple[str, str, str],
    record: str,
    spaces: tuple[str, str],
    successes: str = "",
) -> Headline:
    (measure, other), (method, anchors, title), (source, target) = measured, of, spaces
    row = {"method": method, "anchors": anchors, "representation": "relative", "metric": "mrr"}
    row |= {"source": source, "target": target, "optimised": target} | other
    succeed = f", {successes} runs succeed" if successes else ""
    truth = {"method": "lstsq_truth"}
    return Headline(f"{measure}: {title}{succeed}", f"anchor_opt/{record}", row, truth)


LINES = (  # measure, method, record, source and target, successful random runs
    (WORDS, OURS, "retrieval_glove100_20000", GLOVE100),
    (WORDS, PRINTED, "retrieval_14689", GLOVE, "2 of 5"),
    (WORDS, WITHOUT, "retrieval_14689", GLOVE, "2 of 5"),
    (WORDS, SMALL, "retrieval_glove100_20000", GLOVE100),
    (FEWER, OURS, "retrieval_glove100", GLOVE100),
    (FEWER, PRINTED, "retrieval_4000", LAYERS, "0 of 5"),
    (FEWER, WITHOUT, "retrieval_4000", LAYERS, "0 of 5"),
    (FEWER, SMALL, "retrieval_glove100", GLOVE100),
    (GLOVE_SOUGHT, OURS, "retrieval_word2vec", GLOVE),
    (GLOVE_SOUGHT, PRINTED, "retrieval_word2vec", GLOVE, "0 of 5"),
    (SENTENCES, OURS, "retrieval_mpnet_20000", SIBLINGS),
    (SENTENCES, PRINTED, "retrieval_mpnet_20000", SIBLINGS, "5 of 5"),
    (SENTENCES, WITHOUT, "retrieval_mpnet_20000", SIBLINGS, "5 of 5"),
    (MINILM_SOUGHT, OURS, "retrieval_mpnet_20000", SIBLINGS),
    (MINILM_SOUGHT, PRINTED, "retrieval_mpnet_20000", SIBLINGS, "3 of 5"),
    (FEWER_SENTENCES, OURS, "retrieval_mpnet", SIBLINGS),
    (FEWER_SENTENCES, PRINTED, "retrieval_mpnet", SIBLINGS, "2 of 5"),
    (STARS, OURS, "stitching_stars", GLOVE),
    (STARS, PRINTED, "stitching_stars", GLOVE),
    (ERROR, OURS, "stitching_stars_mpnet", ("minilm", "mpnet")),
    (ERROR, PRINTED, "stitching_stars", GLOVE),
    (SPANISH, OURS, "languages", MESSAGES),
    (SPANISH, PRINTED, "languages", MESSAGES),
    (IMAGES, OURS, "vision_20000", LITE),
    (IMAGES, PRINTED, "vision_20000", LITE, "5 of 5"),
    (IMAGES, WITHOUT, "vision_20000", LITE, "5 of 5"),
)
HEADLINES = tuple(itertools.starmap(_headline, LINES))
