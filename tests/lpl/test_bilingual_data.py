"""Files of two spaces and of a dictionary."""

import numpy as np

from lpl import bilingual_data


def test_files_of_spaces_and_dictionaries_are_no_proxy_and_have_test_pairs_of_their_own(tmp_path):
    for name in ("e", "i"):
        words = np.array([f"{name}{i}" for i in range(90)])
        np.savez(tmp_path / f"{name}.npz", vectors=np.ones((90, 4)), words=words)
    for name, rows in (("known", range(50)), ("test", range(50, 70))):
        text = "".join(f"e{i} i{i}\ne{i} i{79 - i}\n" for i in rows) + "e1 unknown\n"
        (tmp_path / f"{name}.txt").write_text(text)
    names = tuple(str(tmp_path / name) for name in ("e.npz", "i.npz", "known.txt"))
    data = bilingual_data.load(names, str(tmp_path / "test.txt"), max_rows=80, cache=tmp_path)
    assert not data.proxy and len(data.source.words) == len(data.target.words) == 80
    for split, asked, count in (("test", range(50, 70), 20), ("validation", range(50), 10)):
        sizes = bilingual_data.Sizes(
            num_validation=10, num_test=100, split=split, best_translation=True
        )
        parts = bilingual_data.split(data, 30, 0, sizes)
        assert set(parts.queries) <= {*asked} and len(parts.queries) == count
        # The first translation of a word is trained on; all of them are correct.
        both = np.stack([parts.queries, 79 - parts.queries], axis=1)
        np.testing.assert_array_equal(parts.translations, both)
        np.testing.assert_array_equal(*parts.train.T)
        assert len(parts.train) == 30 and not {*parts.train[:, 0]} & {*parts.queries}
