"""The main results, for RESULTS.md; the first two are in the README."""

from common.run.records import Headline

# Shown once `python -m docs.keep` has kept this run.
HEADLINES = (Headline("accuracy on digits", "my_paper/main_table", {"metric": "accuracy"}),)
