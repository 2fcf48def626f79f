"""English and Finnish, a language pair of the paper, by the names of spaces and dictionary."""

import numpy as np

from common.data.packages import cache_dir
from lpl import bilingual_data
from lpl.word_alignment_report import coverage


def test_english_and_finnish():
    names = "word2vec", "finnish", "freedict"
    data = bilingual_data.load(names, max_rows=1, cache=cache_dir())  # of files alone
    assert data.title == "word2vec -> finnish, freedict" and data.proxy and data.test is None
    ((_, _, pairs, other, covered),) = coverage(data)
    assert (pairs, other, covered) == ("44,017", "46,521", "12,176 of 38,331")
    sizes = bilingual_data.Sizes(num_validation=150, num_test=1_500, split="test")
    parts = bilingual_data.split(data, 5_000, 0, sizes)
    assert len(parts.train) == 5_000 and len(parts.queries) == 1_500
    english = {data.source.words[row] for row in parts.train[:, 0]}
    assert not english & {data.source.words[row] for row in parts.queries}
    row_of = {word: row for row, word in enumerate(data.source.words)}
    known = {(data.source.words[a], data.target.words[b]) for a, b in data.dictionary.pairs}
    assert {("dog", "koira"), ("water", "vesi")} <= known and len(row_of) == 23_930
    assert np.isfinite(data.target.vectors).all()
