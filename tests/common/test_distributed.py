"""A whole experiment of each paper with --distributed: two processes end with one's results."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from tests import commands

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
COMMANDS = {  # experiment -> module of its paper, and values that make it small
    "retrieval": "anchor_opt.main --config.quick --config.methods=algorithm1",
    "images": "wasserstein_embed.main --config.dataset=mnist_5k --config.train_split=train[:300]"
    " --config.test_split=test[:60] --config.methods=sinkhorn --config.batch_size=32"
    " --config.steps=9 --config.evaluate_every=3 --config.num_test_pairs=60"
    " --config.distance.iterations=2",
    "word_alignment": "lpl.main --config.quick --config.sources=('glove',)"
    " --config.targets=('word2vec',) --config.dictionaries=('same',) --config.num_pairs=(500,)"
    " --config.methods=('artetxe_2018','lpa_mse') --config.max_rows=4000 --config.num_test=300"
    " --config.lpa_mse.updates=100",
    "match": "embed_match.main --config.quick --config.dataset=rotten_tomatoes"
    " --config.random_seeds=(0,) --config.num_texts=400 --config.num_words=200"
    " --config.cbow.dim=12 --config.cbow.epochs=2 --config.glove.dim=12 --config.glove.blocks=4"
    " --config.glove.epochs_per_step=1 --config.glove.steps=2 --config.lstm.hidden_size=8"
    " --config.lstm.max_length=10 --config.lstm.updates_per_step=5 --config.lstm.steps=2",
}


def main(runs):
    """The runs of one of several processes, of which the first joins the others."""
    for run in json.loads(runs):
        with pytest.MonkeyPatch.context() as patch:
            if code := commands.run(patch, *run, "--distributed"):
                sys.exit(code)
        jax.distributed.initialize = lambda: None
        jax.clear_caches()  # for the memory of the next


def command(name, workdir):
    """Module and flags of a run."""
    module, *values = COMMANDS[name].split()
    return module, f"--config={name}", f"--workdir={workdir}", *values


def codes_of_two(runs):
    """The exit codes of two processes that do these runs together."""
    line = [sys.executable, "-m", "tests.common.test_distributed", json.dumps(runs)]
    hosts = commands.on_two_hosts()
    processes = [subprocess.Popen(line, cwd=ROOT, env=host) for host in hosts]
    return [process.wait(3600) for process in processes]


def rows(folder):
    """The results of a run but for the times."""
    assert (folder / "table.md").stat().st_size > 0
    results = json.loads((folder / "results.json").read_text())
    return [row for row in results if "seconds" not in row["metric"]]


@pytest.mark.network
def test_two_processes_end_with_the_results_of_one_and_resume_no_run(tmp_path, monkeypatch, capfd):
    """Hosts that skipped different parts of a run would wait for each other forever."""
    runs = [command(name, str(tmp_path / name)) for name in COMMANDS]
    assert codes_of_two([*runs, runs[-1]]) == [2, 2]
    assert capfd.readouterr().err.count("choose another --workdir.") == 2
    for name in COMMANDS:  # afterwards, for its memory
        assert not commands.run(monkeypatch, *command(name, tmp_path / f"{name}-alone"))
        folders = (tmp_path / f"{name}{end}" for end in ("-alone", "", "-host1"))
        one, two, second = map(rows, folders)
        assert two == second
        for row, other in zip(one, two, strict=True):
            assert {**row, "mean": 0} == {**other, "mean": 0}
            error = f"{name}: {row['metric']}"
            np.testing.assert_allclose(row["mean"], other["mean"], atol=0.02, err_msg=error)


if __name__ == "__main__":
    main(*sys.argv[1:])
