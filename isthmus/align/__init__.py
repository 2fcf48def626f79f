"""Finds which rows of two arrays correspond; the names of `discovery` are found here as well."""

from isthmus import names_of

LEARNING_ROWS = 20_000  # most frequent ones, on which maps are learned
__getattr__ = names_of("isthmus.align.discovery")
