"""What the documentation shows of this paper's kept runs (`python -m docs.render`)."""

from common.run.records import Headline, Record
from my_paper.experiments.main_table import table

# Lines of the results, the first two in the README, once `python -m docs.keep` has kept this run.
HEADLINES = (Headline("accuracy on digits", "my_paper/main_table", {"metric": "accuracy"}),)


def tables(record: Record) -> dict[str, str]:
    """The tables of a kept run by title."""
    return {"Table 1": table(record.rows)}
