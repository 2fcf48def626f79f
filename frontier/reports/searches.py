"""What the searches of all records report about themselves, beside what is true."""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence

from anchor_opt.evaluation import REPORTS
from common.run.records import Record, Stated
from common.run.results import markdown, select
from common.spaces import space_pairs

OTHER_SPACES = "all others"
DETECTOR_SPACES = "those by which the detector was made"
# Bounds of the stated probabilities, between which the searches are counted.
PROBABILITIES = (0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)
DEVELOPMENT = "minilm -> minilm_input"


def of_all_records(records: Iterable[Record]) -> str:
    """How often the bootstrap's searches of all records report a wrong success or failure.

    Searches between the spaces by which the detector was made are counted apart. The shares have
    95% intervals (Clopper and Pearson 1934).
    """
    counts: dict[str, Counter[str]] = {OTHER_SPACES: Counter(), DETECTOR_SPACES: Counter()}
    for record in records:
        rows = select(record.rows, method="bootstrap")
        for dataset in dict.fromkeys(row.dataset for row in select(rows, metric=REPORTS[0])):
            made_by = dataset == DEVELOPMENT or dataset.endswith("noisy copy")
            of_spaces = counts[DETECTOR_SPACES if made_by else OTHER_SPACES]
            for metric in REPORTS:
                reports = select(rows, metric=metric, dataset=dataset)
                of_spaces[metric] += round(sum(row.mean * row.num_runs for row in reports))
            of_spaces["searches"] += sum(row.num_runs for row in reports)
            parts = space_pairs.file_name(*dataset.split(" -> "))
            of_spaces["failed"] += sum(
                name.startswith(f"{parts}-") and "-bootstrap-" in name for name in record.failed
            )
    body = []
    for spaces, of_spaces in counts.items():
        searches, false = of_spaces["searches"], of_spaces["false_success"]
        wrong = of_spaces["failed"] - of_spaces["false_failure"] + false
        body.append([spaces, f"{searches}", f"{wrong}", _share(false, searches)])
        body[-1] += [_share(false, wrong), _share(of_spaces["false_failure"], searches - wrong)]
    header = ("Spaces", "Searches", "Wrong in truth", "False success", "Of the wrong ones")
    return markdown((*header, "False failure, of the right ones"), body)


def calibration(records: Iterable[Record]) -> str:
    """How many searches succeed of those that state about the same probability of success.

    Searches between the spaces by which the detector was made are left out. The shares have 95%
    intervals (Clopper and Pearson 1934), and the mean squared error of the probabilities (Brier
    1950) stands below, beside that of the share of all.
    """
    development = f"{space_pairs.file_name(*DEVELOPMENT.split(' -> '))}-"
    searches = [
        search
        for record in records
        for search in record.stated
        if "-bootstrap-" in search.part and not search.part.startswith(development)
    ]
    body = []
    for low, high in itertools.pairwise(PROBABILITIES):
        last = high == PROBABILITIES[-1]
        between = [x for x in searches if low <= x.probability and (last or x.probability < high)]
        if between:
            stated = sum(x.probability for x in between) / len(between)
            count = sum(x.succeeded for x in between)
            again = sum("-geometry-" in x.initialization for x in between)
            cells = f"{low:g} to {high:g}", f"{len(between)}", f"{again}", f"{stated:.3f}"
            body.append([*cells, _share(count, len(between))])
    header = ("Stated probability", "Searches", "From the geometry", "Stated, mean", "Succeeded")
    return f"{markdown(header, body)}\n\n{_brier(searches)}" if searches else ""


def _brier(searches: Sequence[Stated]) -> str:
    share = sum(x.succeeded for x in searches) / len(searches)
    error = sum((x.probability - x.succeeded) ** 2 for x in searches) / len(searches)
    return (
        f"Mean squared error of the probabilities: {error:.3f}; of the share of all {share:.2f}: "
        f"{share * (1 - share):.3f}."
    )


def _share(count: int, total: int) -> str:
    """A count, and its share of a total, if there is one, with a 95% interval."""
    if not total:
        return f"{count}"
    from scipy.stats import binomtest  # half a second, which a run does not need

    low, high = binomtest(count, total).proportion_ci()
    return f"{count} ({count / total:.1%}, {low:.1%} to {high:.1%})"
