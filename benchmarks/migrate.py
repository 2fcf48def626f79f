"""A store whose embedding model changes: our commands and those of isotrieve on the same files."""

import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from benchmarks.harness import Benchmark, Case, Implementation, Work
from common import remapping
from common.data.packages import cache_dir
from common.linear import unit
from common.retrieval import top_k
from common.spaces import paired_spaces

NUM_QUERIES = 1_000


class Change(NamedTuple):
    """The files that a user has, and what only the score sees.

    Attributes:
      folder: of `old.npy`, the whole store; `new.npy`, its first rows by the new model;
        `pairs.txt`, their row numbers; `queries.npy`, of the new model, not in the store. For
        isotrieve also `paired.npy`, the old vectors of `new.npy`, and `store/vectors.npy`, old.npy.
      held_out: the rows of the store that are searched, of which none is paired.
      new: their unit rows by the new model.
      queries: unit rows.
    """

    folder: tempfile.TemporaryDirectory
    held_out: slice
    new: Float[np.ndarray, "n d"]
    queries: Float[np.ndarray, "q d"]


class Outcome(NamedTuple):
    """What a user has in the end.

    Attributes:
      store: all mapped rows.
      queries: the new model's, as they search it.
      reported: what the tool says that is kept of the ten nearest.
      verdict_after: seconds until it has said so.
      commands: their number.
    """

    store: Float[np.ndarray, "n d"]
    queries: Float[np.ndarray, "q d"]
    reported: float
    verdict_after: float
    commands: int


def load(source: str, target: str, num_rows: int, num_pairs: int, max_pairs: int) -> Change:
    """Items of two spaces in random order: the store, of which the first are pairs, and queries.

    Rows after the first `max_pairs` are searched, the same ones for all numbers of pairs.
    """
    pair = paired_spaces.load(
        source, target, num_words=num_rows, cache=cache_dir(), max_rows=num_rows
    )
    pair = pair.take(np.random.default_rng(0).permutation(num_rows))
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name)
    old = pair.source[:-NUM_QUERIES]
    for name, vectors in {
        "old": old,
        "new": pair.target[:num_pairs],
        "paired": old[:num_pairs],
        "queries": pair.target[-NUM_QUERIES:],
    }.items():
        np.save(path / f"{name}.npy", vectors)
    (path / "pairs.txt").write_text("".join(f"{i} {i}\n" for i in range(num_pairs)))
    (path / "store").mkdir()
    (path / "store" / "vectors.npy").symlink_to(path / "old.npy")
    held_out = slice(max_pairs, num_rows - NUM_QUERIES)
    new, queries = unit(pair.target[held_out]), unit(pair.target[-NUM_QUERIES:])
    return Change(folder, held_out, np.asarray(new), np.asarray(queries))


def work(change: Change) -> Work:
    """The product of the store and a map."""
    old = np.load(Path(change.folder.name) / "old.npy", mmap_mode="r")
    (n, d), e = old.shape, change.new.shape[1]
    return Work(2.0 * n * d * e, 4.0 * n * (d + e))


def score(change: Change, outcome: Outcome) -> dict[str, float]:
    """The share of the ten nearest re-embedded rows that are among the ten nearest mapped ones."""
    nearest: Int[np.ndarray, "q 10"] = np.asarray(top_k(change.queries, change.new, 10).index)
    mapped = unit(outcome.store[change.held_out])
    kept = remapping.kept(unit(outcome.queries), mapped, nearest)
    return {
        "recall@10": kept["recall_10"],
        "reported": outcome.reported,
        "verdict after s": outcome.verdict_after,
        "commands": outcome.commands,
    }


def _run(*commands: str) -> float:
    """Runs commands in new processes; returns the seconds until the first has ended."""
    ends = []
    start = time.perf_counter()
    for command in commands:
        words = [sys.executable, "-m", *command.split()]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        ends.append(time.perf_counter() - start)
    return ends[0]


def _ours(change):
    folder = change.folder.name

    def call():
        with tempfile.TemporaryDirectory(dir=folder) as out:
            apply, using = "isthmus apply", f"--map={out}/done/map.npz"
            seconds = _run(
                f"isthmus migrate --old={folder}/old.npy --new={folder}/new.npy "
                f"--pairs={folder}/pairs.txt --pair_rows --out={out}/done",
                f"{apply} {folder}/old.npy {using} --out={out}/mapped.npy",
                f"{apply} {folder}/queries.npy {using} --side=target --out={out}/asked.npy",
            )
            results = json.loads(Path(out, "done", "results.json").read_text())
            reported = results["kept"]["by_map"]["recall_10"][0]
            store, queries = (np.load(f"{out}/{name}.npy") for name in ("mapped", "asked"))
            return Outcome(store, queries, reported, seconds, commands=3)

    return call


def _isotrieve(change):
    from isotrieve.mapping.base import read_isotrieve_header

    folder = change.folder.name

    def call():
        with tempfile.TemporaryDirectory(dir=folder) as out:
            seconds = _run(
                f"isotrieve.cli calibrate --source-vectors={folder}/paired.npy "
                f"--target-vectors={folder}/new.npy --output={out}/map",
                f"isotrieve.cli transform --mapping={out}/map --source-dir={folder}/store "
                f"--target-dir={out}/mapped",
            )
            reported = read_isotrieve_header(f"{out}/map")["validation"]["top10_retention"]
            store = np.load(f"{out}/mapped/vectors.npy").astype(np.float32)
            return Outcome(store, np.load(f"{folder}/queries.npy"), reported, seconds, commands=2)

    return call


def case(num_pairs: int) -> Case:
    """A case of the sentences that both encoders have in the cache after the experiments."""
    names = "minilm_sentences", "mpnet_sentences"
    data = partial(load, *names, num_rows=24_576, num_pairs=num_pairs, max_pairs=8_000)
    return Case(f"minilm-mpnet-{num_pairs}", num_pairs, data, work, rounds=3)


BENCHMARK = Benchmark(
    title="A store of 23,576 sentences whose model changes, MiniLM to MPNet",
    goal=">= 1 at equal or better recall",
    note=(
        "Seconds are those of all commands, each a new process: ours are migrate and apply, of the "
        "store and of the queries, those of isotrieve calibrate and transform (its queries need no "
        "command; its gate asks for further pairs and is left out). Both read .npy files; "
        "isotrieve is given the paired old vectors in a file of their own, ours row numbers. "
        "recall@10: of the ten re-embedded rows nearest to a query of the new model, the share "
        "among the ten nearest mapped ones, the same measure for both: 1,000 queries, searched are "
        "15,576 rows, none of them paired. reported: ours the estimate of that in the whole store; "
        "isotrieve's top-10 retention, how often a row's own partner is among the ten nearest of a "
        "tenth of the pairs. verdict after: the first command. FLOPs: the store times the map."
    ),
    cases=tuple(map(case, (500, 2_000, 8_000))),
    quick=Case(
        "glove-glove100-500",
        500,
        partial(load, "glove", "glove100", num_rows=4_000, num_pairs=500, max_pairs=500),
        work,
        rounds=1,
    ),
    implementations={
        "isthmus": Implementation(_ours, warm_up=False),
        "isotrieve": Implementation(_isotrieve, requires=("isotrieve",), warm_up=False),
    },
    score=score,
    axis="pairs",
)
