"""English and Finnish, a language pair of the paper, by the names of spaces and dictionary."""

import numpy as np
import pytest

from common.data.packages import cache_dir
from lpl import bilingual_data
from lpl.reports.word_alignment import coverage

pytestmark = pytest.mark.network


@pytest.mark.slow
def test_english_and_finnish():
    names = "word2vec", "finnish", "freedict"
    data = bilingual_data.load(names, max_rows=20_000, cache=cache_dir())
    assert data.title == "word2vec -> finnish, freedict" and data.proxy and data.test is None
    ((_, _, pairs, other, covered),) = coverage(data)
    assert (pairs, other, covered) == ("15,929", "74,609", "6,540 of 38,331")
    sizes = bilingual_data.Sizes(
        num_validation=150, num_test=1_500, split="test", best_translation=True
    )
    parts = bilingual_data.split(data, 2_500, 0, sizes)
    assert (
        len(np.unique(parts.train[:, 0])) == len(parts.train) == 2_500
        and len(parts.queries) == 1_500
    )
    english = {data.source.words[row] for row in parts.train[:, 0]}
    assert not english & {data.source.words[row] for row in parts.queries}
    # The best translation of a word is trained on; all of them are correct.
    best: dict[int, int] = {}
    every: dict[int, set[int]] = {}
    for a, b in data.dictionary.pairs.tolist():
        best.setdefault(a, b)
        every.setdefault(a, set()).add(b)
    assert all(best[a] == b for a, b in parts.train.tolist())
    for query, gold in zip(parts.queries.tolist(), parts.translations.tolist(), strict=True):
        assert set(gold) - {-1} == every[query]
    row_of = {word: row for row, word in enumerate(data.source.words)}
    known = {(data.source.words[a], data.target.words[b]) for a, b in data.dictionary.pairs}
    assert {("dog", "koira"), ("water", "vesi")} <= known and len(row_of) == 20_000
    assert np.isfinite(data.target.vectors).all()
