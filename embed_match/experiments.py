"""The experiments by name; each takes (config, work, cache), returns the table for the terminal."""

from embed_match.correlation import correlate
from embed_match.ensembling import ensemble
from embed_match.matching import match

EXPERIMENTS = {"match": match, "correlate": correlate, "ensemble": ensemble}
