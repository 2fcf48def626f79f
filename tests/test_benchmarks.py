"""Every benchmark measures our implementations in its quick case; peers are not installed here."""

import numpy as np
import pytest

from benchmarks import harness

pytestmark = [pytest.mark.network, pytest.mark.slow]


@pytest.mark.parametrize("name", harness.BENCHMARKS)
def test_ours_is_measured_and_scored(name, monkeypatch):
    monkeypatch.setattr(harness, "rates", lambda: {"flops": 1e12, "bytes": 1e10})
    benchmark = harness.load(name)
    ours = {
        side: implementation._replace(warm_up=False)  # its time may include compiling
        for side, implementation in benchmark.implementations.items()
        if side.startswith("isthmus")
    }
    rows = harness.measure(benchmark._replace(implementations=ours), benchmark.quick, rounds=1)
    assert [row["side"] for row in rows] == list(ours)
    for row in rows:
        assert row["seconds"] > 0 and row["flops"] > 0
        assert row["scores"] and all(np.isfinite(value) for value in row["scores"].values())
        assert row["scores"].get("MRR", 1) > 0.9 and row["scores"].get("P@1", 1) > 0.1
