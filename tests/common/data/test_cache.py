"""Arrays and data sets that are computed once; tests/faults damages them."""

import numpy as np
import pytest

from common.data import array_cache, builders
from common.data.packages import PACKAGES
from common.errors import UserError
from tests.faults.readers import TinyRows


def read(cache):
    return builders.read_table(TinyRows(cache=cache), cache)["text"]


def test_an_interrupted_build_starts_again(tmp_path, monkeypatch, capfd):
    generate = TinyRows._generate_examples

    def interrupted(self):
        yield next(generate(self))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TinyRows, "_generate_examples", interrupted)
        with pytest.raises(KeyboardInterrupt):
            read(tmp_path)
    assert len(read(tmp_path)) == 9
    printed = capfd.readouterr()
    assert printed.out == "" and "splits" not in printed.err  # TFDS prints nothing


def test_all_blocks_of_a_set_are_read_in_order(tmp_path, monkeypatch):
    class Table(builders.PackageBuilder):
        VERSION = "1.0.0"

        def _source(self):
            columns = {"text": builders.TEXTS, "x": builders.array_column((2,), np.float32)}
            return PACKAGES["reviews"], columns

        def _table(self):
            return {"text": texts, "x": x}

    monkeypatch.setattr(builders, "BLOCK_ROWS", 3)
    texts, x = ["a\nb", "", "é", "d", "e", "f", "g"], np.arange(14, dtype=np.float32).reshape(7, 2)
    table = builders.read_table(Table(cache=tmp_path), tmp_path)
    assert table["text"] == texts
    np.testing.assert_array_equal(table["x"], x)
    (info,) = tmp_path.rglob("dataset_info.json")
    info.write_text(info.read_text().replace('"3"', '"2"'))  # the number of blocks
    assert builders.read_table(Table(cache=tmp_path), tmp_path)["text"] == texts


def test_a_cache_that_cannot_be_written_is_a_user_error(tmp_path):
    (tmp_path / "tfds").write_text("a file where the folder should be")
    with pytest.raises(UserError, match=f"Cannot build .*tiny_rows.*{tmp_path}.*ISTHMUS_CACHE"):
        read(tmp_path)


def test_arrays_are_computed_once_for_each_recipe(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return {"a": np.arange(3.0), "b": np.ones((2, 2), np.int32)}

    for recipe, count in (({"x": 1}, 1), ({"x": 1}, 1), ({"x": (2, 3)}, 2), ({"x": [2, 3]}, 2)):
        cached = array_cache.load_or_compute(tmp_path, "name", recipe, compute)
        assert len(calls) == count
        assert cached["b"].dtype == np.int32
        np.testing.assert_array_equal(cached["a"], [0, 1, 2])


@pytest.mark.parametrize("items", [["a", "bc", "d", "e", "f"], np.arange(10.0).reshape(5, 2)])
def test_shards_are_computed_once_and_serve_longer_lists(tmp_path, items):
    calls = []

    def load(items, fail_at=None):
        def compute(shard, bar):
            calls.append(len(shard))
            if len(calls) == fail_at:
                raise KeyboardInterrupt
            bar.update(len(shard))
            return np.array([[len(str(item)), 1.0] for item in shard])

        options = {"shard_size": 2, "progress": "", "unit": "item"}
        return array_cache.load_or_compute_shards(tmp_path, "x", 1, items, compute, **options)

    with pytest.raises(KeyboardInterrupt):
        load(items, fail_at=2)
    assert calls == [2, 2]
    whole = load(items)  # the first shard was stored before the interruption
    np.testing.assert_array_equal(whole, [[len(str(item)), 1] for item in items])
    assert calls == [2, 2, 2, 1]
    np.testing.assert_array_equal(load(items[:4]), whole[:4])
    assert calls == [2, 2, 2, 1]
    next(tmp_path.glob("x-0000002-*")).write_bytes(b"damaged")
    np.testing.assert_array_equal(load(items), whole)
    assert calls == [2, 2, 2, 1, 2]
    load(items[1:3])
    assert calls[5:] == [2]  # other items


def test_a_digest_depends_on_values_shapes_and_types():
    x = np.arange(6)
    others = (x + 1, x.reshape(2, 3), x.astype(np.int32), x.astype(float))
    digests = [array_cache.digest(y) for y in (x, *others)] + [array_cache.digest(x, x)]
    assert len(set(digests)) == 6
    assert array_cache.digest(np.asfortranarray(x.reshape(2, 3))) == array_cache.digest(
        x.reshape(2, 3)
    )
