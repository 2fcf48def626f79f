"""A store whose embedding model changes: our commands and peers on the same vectors."""

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
PROBED = 500  # candidates of a query that embedflow's probe embeds, its default


class Change(NamedTuple):
    """The files that a user has, and what only the score sees.

    Attributes:
      folder: of `old.npy`, the whole store; `new.npy`, its first rows by the new model;
        `pairs.txt`, their row numbers; `queries.npy`, of the new model, not in the store. For
        isotrieve also `paired.npy`, the old vectors of `new.npy`, and `store/vectors.npy`, old.npy.
        For embedflow, which runs both models, `embedded.npy`, the whole store by the new model,
        and `old_queries.npy`.
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
      store: all rows that are searched.
      queries: as they search them.
      reported: what the tool says that is kept of the ten nearest.
      verdict_after: seconds until it has said so.
      commands: their number, or that of calls.
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
        "embedded": pair.target[:-NUM_QUERIES],
        "old_queries": pair.source[-NUM_QUERIES:],
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
    """The share of the ten nearest re-embedded rows that are among the nearest of the outcome.

    Among N candidates is what is kept if the new model embeds these and puts them in order: each
    of the ten that is among them is then among the first ten.
    """
    nearest: Int[np.ndarray, "q 10"] = np.asarray(top_k(change.queries, change.new, 10).index)
    store = unit(outcome.store[change.held_out])
    kept = remapping.kept(unit(outcome.queries), store, nearest)
    return {
        "recall@10": kept["recall_10"],
        **{f"in {n}": kept[name] for n, name in remapping.LENGTHS.items() if n > 10},
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


def _embedflow(change):
    import embedflow
    from embedflow.indexes import FaissIndex
    from embedflow.models import EmbeddingModel

    class Embedded(EmbeddingModel):
        """Vectors of texts that are the numbers of their rows."""

        def __init__(self, name, documents, queries):
            self.model_id = self.fingerprint = name
            self.dimension = documents.shape[1]
            self.documents, self.queries = documents, queries

        def encode_queries(self, texts):
            return self.queries[[int(text) for text in texts]]

        def encode_documents(self, texts, batch_size=None):
            return self.documents[[int(text) for text in texts]]

        def close(self):
            pass

    path = Path(change.folder.name)
    files = "old", "old_queries", "embedded", "queries"
    old, old_queries, new, queries = (np.load(path / f"{name}.npy") for name in files)
    models = Embedded("old", old, old_queries), Embedded("new", new, queries)
    documents = path / "documents.jsonl"
    documents.write_text("".join(f'{{"id": "{i}", "text": "{i}"}}\n' for i in range(len(old))))
    index = FaissIndex.build(old, [str(i) for i in range(len(old))])
    num_pairs = len(np.load(path / "new.npy", mmap_mode="r"))
    probes = [(str(i), str(i)) for i in range(num_pairs // PROBED)]

    def call():
        start = time.perf_counter()
        with (
            tempfile.TemporaryDirectory(dir=path) as out,
            embedflow.migrate(
                index=index,
                old_model=models[0],
                new_model=models[1],
                documents=documents,
                cache_path=f"{out}/cache",
                state_path=f"{out}/state.json",
                probe_queries=probes,
                kmax_probe=PROBED,
            ) as session,
        ):
            reported = session.engine.probe["features"]["stability_50"]
        return Outcome(old, old_queries, reported, time.perf_counter() - start, commands=1)

    return call


def _rebasis(change):
    from rebasis import Bridge
    from rebasis.core import save_adapter
    from rebasis.embed import PrecomputedEmbedder
    from rebasis.probe import probe_store
    from rebasis.store import MemoryStore
    from rebasis.types import EncodingProfile

    path = Path(change.folder.name)
    names = "old", "paired", "new", "queries"
    old, paired, new, queries = (np.load(path / f"{name}.npy") for name in names)
    texts = [str(i) for i in range(len(new))]
    profiles = EncodingProfile("old", old.shape[1]), EncodingProfile("new", new.shape[1])

    def call():
        start = time.perf_counter()
        store = MemoryStore(texts, paired, texts)
        embedder = PrecomputedEmbedder(profiles[1], dict(zip(texts, new, strict=True)))
        result, _ = probe_store(store, embedder, size=len(new), heldout=len(new) // 5)
        seconds = time.perf_counter() - start
        with tempfile.TemporaryDirectory(dir=path) as out:
            save_adapter(
                result.adapter,
                Path(out, "map.rbs"),
                direction="query_to_old",
                old_profile=profiles[0],
                new_profile=profiles[1],
            )
            mapped = Bridge.load(f"{out}/map.rbs").to_index_space(queries)
        return Outcome(old, mapped, result.best.arr, seconds, commands=2)

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
        "rebasis and embedflow have commands for models, not for vectors, so that they are called "
        "from Python, without the start of a process. rebasis maps the queries into the old store: "
        "of five kinds of maps (a sixth needs torch), fitted to four fifths of the pairs, the one "
        "that does best on the rest. embedflow has no map: the old model's queries search the old "
        "store. It needs no pairs, but its probe of a query embeds 500 candidates, here of so many "
        "queries that these are as many as the others' pairs. recall@10: of the ten re-embedded "
        "rows nearest to a query of the new model, the share among the ten nearest rows of the "
        "store that is searched, the same measure for all: 1,000 queries, searched are 15,576 "
        "rows, none of them paired. in 50, 100, 200: the share of these ten among so many "
        "candidates, which is recall@10 after the new model has embedded these and put them in "
        "order, as embedflow and the cascade of rebasis do. reported: ours the estimate of "
        "recall@10 in the whole store; isotrieve's top-10 retention, how often a row's own partner "
        "is among the ten nearest of a tenth of the pairs; rebasis's ARR, how often the nearest of "
        "the other pairs is among ten; embedflow's stability, how many of the ten that the new "
        "model puts first among 500 candidates it puts first among 50. verdict after: the first "
        "command or call. FLOPs: the store times the map."
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
        "rebasis": Implementation(_rebasis, requires=("rebasis",), warm_up=False),
        "embedflow": Implementation(_embedflow, requires=("embedflow", "faiss"), warm_up=False),
    },
    score=score,
    axis="pairs",
)
