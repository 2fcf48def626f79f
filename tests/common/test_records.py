import json

import pytest

from common.run import records

CONTENT = {
    "config": {"steps": 3},
    "shared": {"experiment": "one", "dataset": "digits", "std": 0.0, "labels": {"head": "linear"}},
    "rows": [
        {"method": "a", "metric": "mrr", "mean": 0.5, "num_runs": 1},
        {"method": "b", "metric": "mrr", "mean": 0.7, "num_runs": 1, "labels": {"size": 4}},
    ],
    "failed": [],
    "command": "python -m my_paper.main",
    "finished": "2026-11-22 08:00",
    "commit": "abc1234",
    "cores": 2,
    "seconds": 1234.5,
    "quoted": "",
}


def test_a_record_is_read_with_the_fields_that_its_rows_share(tmp_path):
    (tmp_path / "my_paper").mkdir()
    (tmp_path / "my_paper/table.json").write_text(json.dumps(CONTENT))
    record = records.read(tmp_path, "my_paper/table")
    assert (record.name, record.config) == ("my_paper/table", {"steps": 3})
    first, second = record.rows
    assert (first.experiment, first.method, first.mean) == ("one", "a", 0.5)
    assert first.labels == {"head": "linear"} and second.labels == {"head": "linear", "size": 4}
    assert record.provenance() == (
        "`python -m my_paper.main`: 2026-11-22, abc1234, 2 cores in 1,234 s."
    )
    assert record._replace(cores=1, seconds=None).provenance().endswith("abc1234, 1 core.")
    assert record._replace(device="one H100").provenance().endswith("abc1234, one H100 in 1,234 s.")


def test_a_missing_record_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        records.read(tmp_path, "my_paper/none")
