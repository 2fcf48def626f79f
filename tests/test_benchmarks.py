"""Every benchmark measures our implementations in its quick case; peers are not installed here."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import harness

FILES = sorted(Path(harness.__file__).parent.glob("*.py"))
NAMES = [path.stem for path in FILES if "BENCHMARK = Benchmark(" in path.read_text()]


@pytest.mark.parametrize("name", NAMES)
def test_ours_is_measured_and_scored(name, monkeypatch):
    monkeypatch.setattr(harness, "rates", lambda: {"flops": 1e12, "bytes": 1e10})
    benchmark = harness.load(name)
    ours = {k: v for k, v in benchmark.implementations.items() if k.startswith("isthmus")}
    rows = harness.measure(benchmark._replace(implementations=ours), benchmark.quick, rounds=1)
    assert [row["side"] for row in rows] == list(ours)
    for row in rows:
        assert row["seconds"] > 0 and row["flops"] > 0
        assert row["scores"] and all(np.isfinite(value) for value in row["scores"].values())
        assert row["scores"].get("MRR", 1) > 0.9 and row["scores"].get("P@1", 1) > 0.1
