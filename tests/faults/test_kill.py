"""SIGKILL at random moments; of whole experiments see kill.py, of which there is no time here."""

from tests.faults import lives


def test_a_killed_run_ends_with_the_same_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path))
    folder = tmp_path / "runs"
    folder.mkdir()
    found = []
    for disturb in (True, True, False):
        found.append(lives.attempt(folder, "tests.faults.tiny", (), 1, disturb))
        lives.tell(folder, found[-1])
    assert found[-1] == {"life": found[-1]["life"], "phase": "end"}
    assert {line["phase"] for line in found[:2]} <= {"training", "between parts", "part", "data"}
    records = (folder / "whole" / "metrics.jsonl").read_text()
    assert (folder / "life-0" / "metrics.jsonl").read_text() == records
