"""English and Finnish, a language pair of the paper, by the names of spaces and dictionary."""

import numpy as np
import pytest

from common.data.packages import cache_dir
from lpl import bilingual_data
from lpl.reports.word_alignment import coverage


@pytest.mark.network
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
    assert len({*parts.train[:, 0]}) == len(parts.train) == 2_500 and len(parts.queries) == 1_500
    assert not {*parts.train[:, 0]} & {*parts.queries}
    # The best translation of a word is trained on; all of them are correct.
    best, every = {}, {}
    for a, b in data.dictionary.pairs.tolist():
        best.setdefault(a, b)
        every.setdefault(a, set()).add(b)
    assert all(best[a] == b for a, b in parts.train.tolist())
    for query, gold in zip(parts.queries.tolist(), parts.translations.tolist(), strict=True):
        assert set(gold) - {-1} == every[query]
    known = {(data.source.words[a], data.target.words[b]) for a, b in data.dictionary.pairs}
    assert {("dog", "koira"), ("water", "vesi")} <= known
    assert np.isfinite(data.target.vectors).all()


def test_files_of_spaces_and_dictionaries_are_no_proxy_and_have_test_pairs_of_their_own(tmp_path):
    for name in ("e", "i"):
        words = np.array([f"{name}{i}" for i in range(90)])
        np.savez(tmp_path / f"{name}.npz", vectors=np.ones((90, 4)), words=words)
    for name, rows in (("known", range(50)), ("test", range(50, 70))):
        text = "".join(f"e{i} i{i}\n" for i in rows) + "e1 unknown\n"
        (tmp_path / f"{name}.txt").write_text(text)
    names = tuple(str(tmp_path / name) for name in ("e.npz", "i.npz", "known.txt"))
    data = bilingual_data.load(names, str(tmp_path / "test.txt"), max_rows=80, cache=tmp_path)
    assert not data.proxy and len(data.source.words) == len(data.target.words) == 80
    for split, asked, count in (("test", range(50, 70), 20), ("validation", range(50), 10)):
        sizes = bilingual_data.Sizes(
            num_validation=10, num_test=100, split=split, best_translation=False
        )
        parts = bilingual_data.split(data, 30, 0, sizes)
        assert set(parts.queries) <= {*asked} and len(parts.queries) == count
        np.testing.assert_array_equal(parts.translations[:, 0], parts.queries)
        assert len(parts.train) == 30 and not {*parts.train[:, 0]} & {*parts.queries}
