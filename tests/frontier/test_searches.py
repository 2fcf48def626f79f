from scipy.stats import binomtest

from common.run.records import Record
from common.run.results import Row
from frontier.reports import searches


def test_wrong_reports_of_all_records_have_the_intervals_of_scipy():
    def record(dataset, runs, false_successes, failed):
        about = {"experiment": "few_pairs", "dataset": dataset, "method": "bootstrap"}
        about |= {"std": 0.0, "num_runs": runs}
        values = {"false_success": false_successes / runs, "false_failure": 0.0}
        rows = [Row(metric=metric, mean=mean, **about) for metric, mean in values.items()]
        return Record(rows, failed=failed)

    failed = ["a-b-bootstrap-seed0", "a-bc-bootstrap-seed1", "a-b-goat-seed0"]
    of_others = record("a -> b", 9, 1, failed), record("a -> bc", 11, 0, failed)
    made_by = record("minilm -> minilm_input", 4, 0, [])
    table = searches.of_all_records([*of_others, made_by])
    low, high = binomtest(1, 20).proportion_ci()
    share = f"1 (5.0%, {low:.1%} to {high:.1%})"
    assert f"| {searches.OTHER_SPACES} " in table and "| 20 " in table and "| 3 " in table
    assert share in table and "| 4 " in table
