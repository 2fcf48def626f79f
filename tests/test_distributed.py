"""A whole experiment of each paper with --distributed: two processes end with one's results."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import commands

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
COMMANDS = {
    "retrieval": (
        "anchor_opt.main",
        "--config=configs/anchor_opt/retrieval.py",
        "--config.quick",
        "--config.methods=algorithm1",
        "--config.num_words=500",
    ),
    "images": (
        "wasserstein_embed.main",
        "--config=configs/wasserstein_embed/images.py",
        "--config.dataset=mnist_5k",
        "--config.train_split=train[:300]",
        "--config.test_split=test[:60]",
        "--config.methods=sinkhorn",
        "--config.batch_size=32",
        "--config.steps=9",
        "--config.evaluate_every=3",
        "--config.num_test_pairs=60",
        "--config.distance.iterations=4",
    ),
    "word_alignment": (
        "lpl.main",
        "--config=configs/lpl/word_alignment.py",
        "--config.quick",
        "--config.sources=('glove',)",
        "--config.targets=('word2vec',)",
        "--config.dictionaries=('same',)",
        "--config.num_pairs=(500,)",
        "--config.methods=('artetxe_2018', 'lpa_mse')",
    ),
    "match": (
        "embed_match.main",
        "--config=configs/embed_match/match.py",
        "--config.quick",
        "--config.dataset=rotten_tomatoes",
        "--config.random_seeds=(0,)",
    ),
}


def start_two(command, workdir):
    command = [sys.executable, "-m", *command, f"--workdir={workdir}", "--distributed"]
    return [subprocess.Popen(command, cwd=ROOT, env=host) for host in commands.on_two_hosts()]


def rows(folder):
    """The results of a run but for the times."""
    assert (folder / "table.md").stat().st_size > 0
    results = json.loads((folder / "results.json").read_text())
    return [row for row in results if "seconds" not in row["metric"]]


@pytest.mark.network
@pytest.mark.parametrize("name", COMMANDS)
def test_two_processes_end_with_the_results_of_one(name, tmp_path, monkeypatch):
    processes = start_two(COMMANDS[name], tmp_path / "two")
    assert [process.wait(3600) for process in processes] == [0, 0]
    # Afterwards, for its memory.
    assert not commands.run(monkeypatch, *COMMANDS[name], f"--workdir={tmp_path / 'one'}")
    one, two, second = (rows(tmp_path / folder) for folder in ("one", "two", "two-host1"))
    assert two == second
    for row, other in zip(one, two, strict=True):
        assert {**row, "mean": 0} == {**other, "mean": 0}
        np.testing.assert_allclose(row["mean"], other["mean"], atol=0.02, err_msg=row["metric"])


def test_a_run_on_several_hosts_is_not_resumed(tmp_path, capfd):
    """Hosts that skipped different parts would wait for each other forever."""
    for folder in ("two", "two-host1"):
        (tmp_path / folder / "parts").mkdir(parents=True)
        (tmp_path / folder / "parts/first.json").touch()
    processes = start_two(COMMANDS["images"], tmp_path / "two")
    assert [process.wait(3600) for process in processes] == [2, 2]
    assert capfd.readouterr().err.count("choose another --workdir.") == 2
