import errno
import fcntl
import json
from unittest.mock import Mock

import pytest

from common.errors import UserError
from common.run.workdir import Workdir


def test_a_finished_part_is_not_computed_again(tmp_path):
    calls = []
    work = Workdir(tmp_path / "run", {"a": 1})
    with pytest.raises(ZeroDivisionError):  # a part that fails is not stored
        work.part("one", lambda: 1 / 0)
    assert not (tmp_path / "run/parts").exists()
    for _ in range(2):
        assert work.part("one", lambda: calls.append(1) or {"x": 2}) == {"x": 2}
    assert calls == [1]
    assert json.loads((tmp_path / "run/config.json").read_text()) == {"a": 1}


def test_numbers_that_are_not_defined_are_null_in_parts_and_in_the_log(tmp_path):
    work = Workdir(tmp_path, {})
    results = [work.part("one", lambda: {"x": float("nan"), 1: [float("inf")]}) for _ in range(2)]
    assert results == [{"x": None, "1": [None]}] * 2
    work.metrics.add("one", {1: {"loss": float("nan")}})
    for name in ("parts/one.json", "metrics.jsonl"):
        text = (tmp_path / name).read_text()
        assert "null" in text and "NaN" not in text


def test_another_config_is_refused_with_the_values_that_differ(tmp_path):
    first = Workdir(tmp_path, {"words": 10, "inner": {"lr": 0.1}, "methods": ("a",)})
    first.part("a", lambda: 1)
    first._lock.close()
    Workdir(tmp_path, {"words": 10, "inner": {"lr": 0.1}, "methods": ("a",)})._lock.close()
    with pytest.raises(UserError, match=r"inner.lr was 0.1, is now 0.2; words was 10, is now 20"):
        Workdir(tmp_path, {"words": 20, "inner": {"lr": 0.2}, "methods": ("a",)})


def test_a_workdir_is_used_by_one_process_at_a_time(tmp_path):
    first = Workdir(tmp_path, {})
    with pytest.raises(UserError, match="Another process"):
        Workdir(tmp_path, {})
    first._lock.close()


def test_a_workdir_that_cannot_be_created_or_locked_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="Cannot write"):
        Workdir(tmp_path / "file" / "run", {})
    no_locks = Mock(side_effect=OSError(errno.ENOLCK, "No locks available"))
    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(UserError, match=r"Cannot write or lock .* \(No locks available\): choose"):
        Workdir(tmp_path, {})


def test_forget_deletes_later_records_and_damaged_lines_are_left_out(tmp_path):
    work = Workdir(tmp_path, {})
    for step in range(6):
        work.metrics.add("a", {step: {"loss": float(step)}})
    work.metrics.add("b", {9: {"loss": 0.0}})
    path = tmp_path / "metrics.jsonl"
    lines = path.read_bytes().splitlines()
    lines[1] = lines[1].replace(b"part", b"qart")
    lines[2] = lines[2].replace(b"loss", b"\xffoss")
    path.write_bytes(b"\n".join([*lines, b"7", b'{"part": "a", "st']))
    work.metrics.forget("a", after=3)
    steps = [(r["part"], r["step"]) for r in work.metrics.records()]
    assert steps == [("a", 0), ("a", 2), ("a", 3), ("b", 9)]
    assert len(path.read_text().splitlines()) == 4
    work.metrics.close("a")
    assert list((tmp_path / "tensorboard/a").iterdir())
