r"""Kills a run with SIGKILL at random moments and starts it again, until enough kills have landed.

  python -m tests.faults.kill --config=configs/lpl/word_alignment.py --folder=runs/kills

An undisturbed quick run gives the expected rows. Then the same run lives in a workdir of its own:
it is started, killed, started again, until it ends by itself; its results.json must then be that of
the undisturbed run, but for seconds measured. If kills are left the next life begins. What a run
trains into the cache directory it trains in every life: of the cache only the data are shared. The
moments are counted from when the process has the workdir in hand. Each kill is a line of
FOLDER/kills.jsonl, with the phase it fell in; the script itself goes on from there when stopped.
"""

import json
import time
from collections import Counter
from pathlib import Path

from absl import flags
from tqdm import tqdm

from common import cli
from common.data.wheels import cache_dir
from common.errors import UserError
from tests.faults.lives import PHASES, attempt, lines, tell

CONFIG = flags.DEFINE_string("config", None, "Config file of the experiment.")
OPTIONS = flags.DEFINE_multi_string("option", [], "For the run, --option=--config.random_seeds=0.")
FOLDER = flags.DEFINE_string("folder", None, "Where all runs lie.")
KILLS = flags.DEFINE_integer("kills", 20, "To land.", lower_bound=1)
SEED = flags.DEFINE_integer("seed", 0, "Of the moments.")
SLICE = flags.DEFINE_float("seconds", float("inf"), "After which no new start is made.")
flags.mark_flags_as_required(["config", "folder"])


def main(argv: list[str]) -> None:
    """Kills until enough have landed, and counts."""
    del argv
    if not cache_dir().is_dir():
        raise UserError("There is no cache directory: run the experiment once before.")
    folder, until = Path(FOLDER.value).absolute(), time.monotonic() + SLICE.value
    folder.mkdir(parents=True, exist_ok=True)
    module = f"{Path(CONFIG.value).parent.name}.main"
    arguments = [f"--config={CONFIG.value}", "--config.quick", *OPTIONS.value]
    counts = Counter(line["phase"] for line in lines(folder))
    over = False
    with tqdm(total=KILLS.value, desc=CONFIG.value, unit="kill") as bar:
        while not over and time.monotonic() < until:
            found = attempt(folder, module, arguments, SEED.value, landed(counts) < KILLS.value)
            tell(folder, found)
            counts[found["phase"]] += 1
            bar.update(landed(counts) - bar.n)
            over = found["phase"] == "end" and landed(counts) >= KILLS.value
    facts = {"config": CONFIG.value, "options": OPTIONS.value, "seed": SEED.value, "over": over}
    facts |= {"kills": landed(counts), "ends": counts["end"]}
    print(json.dumps(facts | {"by_phase": {name: counts[name] for name in PHASES}}))


def landed(counts: Counter) -> int:
    """How many kills there were."""
    return counts.total() - counts["end"]


if __name__ == "__main__":
    cli.run(main)
