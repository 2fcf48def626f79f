import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from common.encoders import packing


@given(st.lists(st.integers(0, 64), max_size=60), st.sampled_from([64, 128]))
def test_rows_hold_every_text_once_and_are_filled(lengths, size):
    lengths = dict(enumerate(sorted(lengths, reverse=True)))
    rows = packing.packed(lengths, size)
    assert sorted(text for row in rows for text in row) == list(lengths)
    taken = [sum(max(2, lengths[text]) for text in row) for row in rows]
    assert max(taken, default=0) <= size
    # The first text of a row fits into no earlier one, so that no two rows fit into one.
    assert all(a + b > size for a, b in itertools.combinations(taken, 2))


@given(st.lists(st.integers(0, 150), max_size=60))
def test_batches_hold_the_tokens_of_every_text_in_their_order(lengths):
    ids = [[1000 * text + place for place in range(n)] for text, n in enumerate(lengths)]
    found = {}
    for batch in packing.batches(ids, 512):
        assert batch.ids.size in (64, 128, 256, 512) and batch.ids.shape[1] in (64, 128, 256)
        for number, row, place in zip(batch.numbers, *batch.places, strict=True):
            own = batch.texts[row] == place
            np.testing.assert_array_equal(batch.positions[row, own], range(own.sum()))
            found[number] = batch.ids[row, own].tolist()
        assert (batch.texts >= 0).sum() == sum(lengths[number] for number in batch.numbers)
    assert found == dict(enumerate(ids))
