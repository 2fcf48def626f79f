import numpy as np
import pytest

from common.data import array_cache


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
