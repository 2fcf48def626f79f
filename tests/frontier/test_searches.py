from scipy.stats import binomtest

from common.run.records import Record, Stated
from common.run.results import Row
from frontier.reports import searches


def test_wrong_reports_of_all_records_have_the_intervals_of_scipy():
    def record(dataset, runs, false_successes, failed):
        about = {"experiment": "few_pairs", "dataset": dataset, "method": "bootstrap"}
        about |= {"std": 0.0, "num_runs": runs}
        values = {"false_success": false_successes / runs, "false_failure": 0.0}
        rows = [Row(metric=metric, mean=mean, **about) for metric, mean in values.items()]
        head = {"config": {}, "command": "", "finished": "", "commit": "", "cores": 1}
        return Record(name="a", rows=rows, failed=failed, seconds=None, quoted="", **head)

    failed = ["a-b-bootstrap-seed0", "a-bc-bootstrap-seed1", "a-b-goat-seed0"]
    of_others = record("a -> b", 9, 1, failed), record("a -> bc", 11, 0, failed)
    made_by = record("minilm -> minilm_input", 4, 0, [])
    table = searches.of_all_records([*of_others, made_by])
    low, high = binomtest(1, 20).proportion_ci()
    share = f"1 (5.0%, {low:.1%} to {high:.1%})"
    assert f"| {searches.OTHER_SPACES} " in table and "| 20 " in table and "| 3 " in table
    assert share in table and "| 4 " in table


def test_the_probabilities_that_searches_state_are_compared_with_their_successes():
    def stated(part, probability, succeeded, initialization="pairs"):
        return Stated(f"{part}-bootstrap-seed0", initialization, probability, succeeded)

    head = {"config": {}, "command": "", "finished": "", "commit": "", "cores": 1, "quoted": ""}
    searches_of_record = [
        stated("a-b", 0.95, True),
        stated("a-b", 0.91, False, "profiles-geometry-0.5"),
        stated("a-b", 1.0, True),
        stated("minilm-minilm_input", 1.0, False),  # by which the detector was made
    ]
    record = Record(name="a", rows=[], failed=[], seconds=None, stated=searches_of_record, **head)
    lines = searches.calibration([record]).splitlines()
    low, high = binomtest(1, 2).proportion_ci()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:4]]
    share = f"1 (50.0%, {low:.1%} to {high:.1%})"
    assert cells[0] == ["0.9 to 0.99", "2", "1", "0.930", share]
    assert cells[1][:4] == ["0.99 to 1", "1", "0", "1.000"]
    error = (0.05**2 + 0.91**2) / 3
    assert lines[-1].startswith(f"Mean squared error of the probabilities: {error:.3f};")
    assert "all 0.67: 0.222." in lines[-1]
