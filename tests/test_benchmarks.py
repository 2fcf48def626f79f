"""Every benchmark measures our implementations in its quick case; most peers are not installed."""

import tempfile
from importlib import import_module

import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import harness, maps, migrate
from common.linear import unit

pytestmark = [pytest.mark.network, pytest.mark.slow]
SAME = "scipy", "scikit-learn", "POT, network simplex"  # exact, as ours


@pytest.mark.parametrize("name", harness.BENCHMARKS)
def test_ours_is_measured_and_scored(name, monkeypatch):
    """Peers with the same result that the tests have installed find what ours finds."""
    monkeypatch.setattr(harness, "rates", lambda: {"flops": 1e12, "bytes": 1e10})
    benchmark = import_module(f"benchmarks.{name}")
    sides = {
        side: implementation._replace(warm_up=False)  # its time may include compiling
        for side, implementation in benchmark.IMPLEMENTATIONS.items()
        if side.startswith(("isthmus", *SAME))
    }
    monkeypatch.setattr(benchmark, "IMPLEMENTATIONS", sides)
    rows = harness.measure(benchmark, benchmark.QUICK, rounds=1)
    assert [row["side"] for row in rows] == list(sides)
    for row in rows:
        assert row["seconds"] > 0 and row["flops"] > 0
        assert row["scores"] and all(np.isfinite(value) for value in row["scores"].values())
        assert row["scores"].get("P@1", 1) > 0.1
        if row["side"] in SAME:
            assert row["scores"] == pytest.approx(rows[0]["scores"], rel=1e-3)


@pytest.mark.parametrize("noise, shares", [(0, [1, 1, 1, 1]), (1e3, [0.025, 0.125, 0.25, 0.5])])
def test_migrate_scores_a_store_by_the_rows_of_the_new_model_that_it_keeps(noise, shares):
    rng = np.random.default_rng(0)
    new, queries, other = (rng.normal(size=(n, 8)).astype(np.float32) for n in (500, 200, 500))
    with tempfile.TemporaryDirectory() as folder:
        held_out = slice(100, 500)
        change = migrate.Change(folder, held_out, unit(new[held_out]), unit(queries))
        outcome = migrate.Outcome(new + noise * other, queries, 0.0, 0.0, commands=1)
        scores = migrate.score(change, outcome)
    names = "recall@10", "in 50", "in 100", "in 200"
    assert [scores[name] for name in names] == pytest.approx(shares, abs=0.03)


def test_maps_find_what_they_are_made_for():
    rng = np.random.default_rng(0)
    x = unit(rng.normal(size=(300, 8)).astype(np.float32) + 2 * rng.choice([-1, 1], (300, 1)))
    rotations = [np.linalg.qr(rng.normal(size=(8, 8)))[0].astype(np.float32) for _ in range(2)]
    rotated = x @ rotations[0]
    two_parts = np.where(x.sum(1, keepdims=True) > 0, rotated, x @ rotations[1])

    def error(name, y, **setting):
        mapped = maps.MAPS[name][0](jnp.asarray(x), jnp.asarray(y), **setting)(x)
        return float(np.mean((np.asarray(mapped) - y) ** 2))

    assert error("orthogonal", rotated) < 1e-6
    assert error("whitened", rotated, penalty=0.0) < 1e-6
    ridge = error("ridge", two_parts, penalty=0.01)
    assert error("low rank", two_parts, penalty=0.01, rank=8) == pytest.approx(ridge, rel=1e-3)
    assert error("low rank", two_parts, penalty=0.01, rank=2) > ridge
    assert error("8 regions", two_parts, penalty=0.01, count=2, temperature=0.1) < ridge / 10
    assert error("residual network", two_parts, penalty=0.01, steps=300) < ridge
