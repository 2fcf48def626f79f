"""Finds which rows of two spaces correspond: `isthmus align`, and `isthmus.discover` of arrays."""

LEARNING_ROWS = 20_000  # most frequent ones, on which maps are learned
