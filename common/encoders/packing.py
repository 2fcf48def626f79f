"""Texts of different lengths in rows of one length, so that few shapes are compiled.

Several texts share a row of tokens, each of which attends to those of its own text alone (sequence
packing, Krell et al. 2021, https://arxiv.org/abs/2107.02027). Little of a row is padding then.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

ROW_TOKENS = 64  # of a row; of texts that are longer, the next power of two
MIN_TOKENS = 2  # places that a text takes in a row, so that a row has at most half as many texts


class Batch(NamedTuple):
    """Rows of tokens, each of the texts that share it one after the other, and the texts' places.

    `texts` numbers the texts of a row, -1 is padding; `positions` are those in the text; `numbers`
    are of the texts among all, `places` the row of each and its number in this row.
    """

    ids: Int[np.ndarray, "r l"]
    texts: Int[np.ndarray, "r l"]
    positions: Int[np.ndarray, "r l"]
    numbers: list[int]
    places: tuple[list[int], list[int]]


def batches(ids: Sequence[Sequence[int]], batch_tokens: int) -> Iterator[Batch]:
    """Batches of rows, the longest first, of `batch_tokens` tokens, or one row if it has more."""
    by_size = defaultdict(list)
    for number in np.argsort([-len(i) for i in ids], kind="stable").tolist():
        by_size[max(ROW_TOKENS, 1 << (len(ids[number]) - 1).bit_length())].append(number)
    for size, numbers in by_size.items():
        rows = packed({number: len(ids[number]) for number in numbers}, size)
        # A few texts are encoded in a smaller batch.
        count = min(max(1, batch_tokens // size), 1 << (len(rows) - 1).bit_length())
        for start in range(0, len(rows), count):
            yield _batch(rows[start : start + count], ids, (count, size))


def _batch(rows: list[list[int]], ids: Sequence[Sequence[int]], shape: tuple[int, int]) -> Batch:
    tokens, texts, positions = (np.full(shape, value, np.int32) for value in (0, -1, 0))
    numbers, places = [], ([], [])
    for row, members in enumerate(rows):
        start = 0
        for place, number in enumerate(members):
            part = slice(start, start := start + len(ids[number]))
            tokens[row, part], texts[row, part] = ids[number], place
            positions[row, part] = range(len(ids[number]))
            numbers.append(number)
            places[0].append(row)
            places[1].append(place)
    return Batch(tokens, texts, positions, numbers, places)


def packed(lengths: Mapping[int, int], size: int) -> list[list[int]]:
    """Rows of `size` tokens: each text (longest first) goes where the least room is left."""
    rows, by_room = [], [[] for _ in range(size + 1)]  # room -> rows that have so much
    for text, length in lengths.items():
        taken = max(length, MIN_TOKENS)
        room = next((room for room in range(taken, size + 1) if by_room[room]), None)
        if room is None:
            row, room = len(rows), size
            rows.append([])
        else:
            row = by_room[room].pop()
        rows[row].append(text)
        by_room[room - taken].append(row)
    return rows
