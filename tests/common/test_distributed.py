"""Runs on two hosts: a whole experiment with --distributed, and killed trainings."""

import gc
import json
import signal
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import commands

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def main(runs):
    """The runs of one of several processes, of which the first joins the others."""
    for run in json.loads(runs):
        with pytest.MonkeyPatch.context() as patch:
            if code := commands.run(patch, *run, "--distributed"):
                sys.exit(code)
        jax.distributed.initialize = lambda: None
        jax.clear_caches()  # for the memory of the next
        gc.collect()  # closes the workdir


def command(workdir):
    """Module and flags of a run."""
    values = "--config=retrieval", "--config.quick", "--config.methods=algorithm1"
    return "anchor_opt.main", *values, f"--workdir={workdir}"


def two_hosts(module, *arguments):
    """Two processes that run a module together."""
    line = [sys.executable, "-m", module, *map(str, arguments)]
    return [subprocess.Popen(line, cwd=ROOT, env=host) for host in commands.on_two_hosts()]


def codes_of_two(runs):
    """The exit codes of two processes that do these runs together."""
    processes = two_hosts("tests.common.test_distributed", json.dumps(runs))
    return [process.wait(3600) for process in processes]


def rows(folder):
    """The results of a run but for the times."""
    assert (folder / "table.md").stat().st_size > 0
    results = json.loads((folder / "results.json").read_text())
    return [row for row in results if "seconds" not in row["metric"]]


@pytest.mark.network
def test_two_processes_end_with_the_results_of_one(tmp_path, monkeypatch, capfd):
    """The run is begun again and finds all parts, and then with the workdirs exchanged."""
    run = command(tmp_path / "two")
    assert codes_of_two([run, run]) == [0, 0]
    assert capfd.readouterr().err.count("Resuming the run") == 2
    assert not commands.run(monkeypatch, *command(tmp_path / "alone"))  # afterwards, for its memory
    one, two, second = (rows(tmp_path / name) for name in ("alone", "two", "two-host1"))
    assert two == second
    for row, other in zip(one, two, strict=True):
        assert {**row, "mean": 0} == {**other, "mean": 0}
        np.testing.assert_allclose(row["mean"], other["mean"], atol=0.02, err_msg=row["metric"])
    capfd.readouterr()
    (tmp_path / "two-host1").rename(tmp_path / "second")
    (tmp_path / "two").rename(tmp_path / "two-host1")
    assert codes_of_two([run]) == [2, 2]  # the second one, since the first one's has no parts
    assert "host was 0 of 2, is now 1 of 2" in capfd.readouterr().err


def killed(workdir, host, evaluation):
    """Begins the run of killed_host.py and ends it as soon as that host has killed itself."""
    processes = two_hosts("tests.common.killed_host", workdir, host, evaluation)
    assert processes[host].wait(300) == -signal.SIGKILL
    processes[1 - host].kill()
    processes[1 - host].wait()


def content(workdir, host):
    """The parts and the logged metrics of a host."""
    folder = Path(f"{workdir}-{host}")
    texts = {path.name: path.read_text() for path in folder.glob("parts/*")}
    return texts | {"metrics": sorted((folder / "metrics.jsonl").read_text().splitlines())}


def test_a_killed_run_of_two_hosts_resumes_to_the_same_numbers(tmp_path):
    """Either is killed, and then a part that has ended is missing on one of them."""
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    for host, evaluation in ((1, 3), (0, 4), (1, 5)):
        killed(resumed, host, evaluation)
    first = Path(f"{resumed}-1/parts/fit-descent-seed0.json")
    assert [path.name for path in first.parent.iterdir()] == [first.name]
    checkpoints = Path(f"{resumed}-0/checkpoints/fit-descent-seed1")
    assert {path.name for path in checkpoints.iterdir()} == {"4", "8"}
    assert not Path(f"{resumed}-1/checkpoints").exists()
    first.unlink()
    for workdir in (resumed, whole):
        processes = two_hosts("tests.common.killed_host", workdir, 0, 0)
        assert [process.wait(300) for process in processes] == [0, 0]
    assert content(whole, 0) == content(whole, 1)
    assert [content(resumed, host) for host in (0, 1)] == [content(whole, 0)] * 2
    for seed in (0, 1):  # what the steps of killed_host.py end with, by one host alone
        rng = jax.random.normal
        rows, state = rng(jax.random.key(seed), (64, 3)), jnp.zeros(3)
        for index in range(20):
            state += 0.1 * ((rows - state).mean(axis=0) + rng(jax.random.key(index), (3,)))
        part = json.loads(content(whole, 0)[f"fit-descent-seed{seed}.json"])
        found = part["result"]["notes"]["state"]
        np.testing.assert_allclose(found, state, rtol=1e-5)


if __name__ == "__main__":
    main(*sys.argv[1:])
