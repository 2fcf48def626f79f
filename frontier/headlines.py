"""The main results, for RESULTS.md; the first two are in the README."""

from common.run.records import Headline
from frontier.reports.searches import TRUTH

TRUE, ANCHORS = {"method": TRUTH}, {"method": "lstsq_truth"}
OURS, DISJOINT = {"method": "bootstrap"}, {"method": "disjoint"}
MRR = {"metric": "mrr", "representation": "relative"} | OURS
HALVES = {"metric": "top_1", "source": "wordllama_sentences"} | DISJOINT
ENCODERS = HALVES | {"source": "minilm_sentences"}
JUDGED = {"metric": "ndcg_10", "dataset": "wordllama -> e5", "num_pairs": 300}
NEW_MODEL = {"metric": "recall_10", "method": "chosen", "num_pairs": 1_000}
NEW_MODEL |= {"dataset": "minilm_sentences -> use_sentences"}
JAPANESE = {"metric": "top_1", "source": "minilm_messages_en", "target": "use_messages_ja"}
JAPANESE |= {"num_pairs": 0}
HEADLINES = (
    Headline(
        "top-1 of new English and Japanese messages, no known pair, 4,000 in unknown order",
        "frontier/languages",
        JAPANESE | OURS,
        TRUE,
    ),
    Headline(
        "the same, from 4,000 messages of each language that are no translations",
        "frontier/languages_disjoint",
        JAPANESE | DISJOINT,
        TRUE,
    ),
    Headline(
        "the same of English and French, in unknown order",
        "frontier/languages",
        JAPANESE | {"target": "use_messages_fr"} | OURS,
        TRUE,
    ),
    Headline(
        "MRR without known pairs, 4,500 sentences in unknown order, self-learning (ours)",
        "frontier/no_pairs_sentences",
        MRR,
    ),
    Headline("the same, 2,500 sentences, siblings", "frontier/no_pairs_mpnet", MRR, ANCHORS),
    Headline(
        "the same, 2,500 words, upper median of 8 pairs of spaces",
        "frontier/no_pairs",
        MRR | {"dataset": "glove -> word2vec"},
        ANCHORS,
    ),
    Headline(
        "nDCG@10, the old model's 50 candidates in the new one's order, upper median of 10 changes "
        "to a better model; right: all embedded again",
        "frontier/judged_encoders",
        JUDGED | {"method": "old candidates", "candidates": 50},
        {"method": "re-embedded", "candidates": None},
    ),
    Headline(
        "the same, the old model alone",
        "frontier/judged_encoders",
        JUDGED | {"method": "old model"},
    ),
    Headline(
        "P@1 without known pairs through a third space, 2,500 words",
        "frontier/bridge",
        {"metric": "p_at_1", "method": "bridge", "dataset": "glove -> minilm_input"},
    ),
    Headline(
        "top-1 of 2,000 new sentences, learned from disjoint halves of 100,000",
        "frontier/halves",
        HALVES,
        TRUE,
    ),
    Headline(
        "the same between MiniLM and USE, from disjoint halves of 10,000",
        "frontier/halves_encoders",
        ENCODERS | {"num_items": 5_000, "target": "use_sentences"},
        TRUE,
    ),
    Headline(
        "the same between siblings, from disjoint halves of 4,000",
        "frontier/halves_encoders",
        ENCODERS | {"num_items": 2_000, "target": "mpnet_sentences"},
        TRUE,
    ),
    Headline(
        "recall@10 of 20,000 vectors mapped by 1,000 pairs to a model that is no sibling, upper "
        "median of 6 changes; right: by all of them",
        "frontier/new_model",
        NEW_MODEL,
        {"num_pairs": 20_000},
    ),
    Headline(
        "the same, the old model's own lists",
        "frontier/new_model",
        NEW_MODEL | {"method": "old model"},
    ),
)
