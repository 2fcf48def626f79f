r"""Kills `python -m common.encode` with SIGKILL at random moments until it ends by itself.

  python -m tests.faults.kill_encode --folder=runs/encode --kills=5

The first words of MiniLM's vocabulary are encoded, once undisturbed and once with kills (counted
from the first text on), and the vectors compared.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from absl import flags

from common import cli
from common.data import words
from common.data.wheels import cache_dir
from tests.faults.lives import ROOT

FOLDER = flags.DEFINE_string("folder", None, "Where the files lie.", required=True)
KILLS = flags.DEFINE_integer("kills", 5, "At most.", lower_bound=1)
TEXTS = flags.DEFINE_integer("texts", 12_000, "To encode: chunks of 2,048.", lower_bound=1)
SEED = flags.DEFINE_integer("seed", 0, "Of the moments.")


def start(source: Path, output: Path) -> subprocess.Popen:
    """Starts the encoding in a process group of its own."""
    command = [sys.executable, "-m", "common.encode", f"--input={source}", f"--output={output}"]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)


def main(argv: list[str]) -> None:
    """Encodes, kills and compares."""
    del argv
    folder = Path(FOLDER.value).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "texts.txt"
    source.write_text("\n".join(words.vocabulary(cache_dir(), TEXTS.value)[1]) + "\n")
    whole, output = folder / "whole.npz", folder / "killed.npz"
    began = time.monotonic()
    if start(source, whole).wait():
        raise RuntimeError("The undisturbed run failed.")
    seconds, kept = time.monotonic() - began, []
    rng = np.random.default_rng(SEED.value)
    while len(kept) < KILLS.value and not output.exists():
        process = start(source, output)
        try:
            process.wait(rng.uniform(0.3, 0.7) * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kept.append(len(list(output.with_name("killed.npz.parts").glob("*.npz"))))
    if start(source, output).wait():  # also where it is there: a kill may have left its chunks
        raise RuntimeError("The last run failed.")
    with np.load(whole) as first, np.load(output) as second:
        equal = all(np.array_equal(first[name], second[name]) for name in ("vectors", "words"))
    if not equal or sorted(path.suffix for path in folder.iterdir()) != [".npz", ".npz", ".txt"]:
        raise RuntimeError("The two files differ, or something is left over.")
    print(json.dumps({"texts": TEXTS.value, "kills": len(kept), "chunks_kept_at_each": kept}))


if __name__ == "__main__":
    cli.run(main)
