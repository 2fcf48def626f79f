"""A store whose embedding model changes: our commands and peers on the same vectors."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from benchmarks.harness import Case, Implementation, Work
from common.data.packages import cache_dir
from common.linear import unit
from common.retrieval import top_k
from common.spaces import paired_spaces
from isthmus.store import remapping

NUM_QUERIES = 1_000
PROBED = 500  # candidates of a query that embedflow's probe embeds, its default


class Change(NamedTuple):
    """The files that a user has, and what only the score sees.

    The folder has `old.npy`, the whole store; `new.npy`, its first rows by the new model;
    `pairs.txt`, their row numbers; `queries.npy`, of the new model, not in the store. For isotrieve
    also `paired.npy`, the old vectors of `new.npy`, and `store/vectors.npy`, old.npy. For
    embedflow, which runs both models, `embedded.npy`, the whole store by the new model, and
    `old_queries.npy`.
    """

    folder: tempfile.TemporaryDirectory
    held_out: slice  # the rows of the store that are searched, of which none is paired
    new: Float[np.ndarray, "n d"]  # their unit rows by the new model
    queries: Float[np.ndarray, "q d"]  # unit rows

    def read(self, *names: str) -> list[np.ndarray]:
        """The vectors of some of the files."""
        return [np.load(Path(self.folder.name, f"{name}.npy")) for name in names]


class Outcome(NamedTuple):
    """What a user has in the end."""

    store: Float[np.ndarray, "n d"]  # all rows that are searched
    queries: Float[np.ndarray, "q d"]  # as they search them
    reported: float  # what the tool says that is kept of the ten nearest
    verdict_after: float  # seconds until it has said so
    commands: int  # their number, or that of calls


def load(source: str, target: str, num_rows: int, max_pairs: int, num_pairs: int) -> Change:
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
    (n, d), e = change.read("old")[0].shape, change.new.shape[1]
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
            return Outcome(store, *change.read("queries"), reported, seconds, commands=2)

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
    old, old_queries, new, queries = change.read("old", "old_queries", "embedded", "queries")
    models = Embedded("old", old, old_queries), Embedded("new", new, queries)
    documents = path / "documents.jsonl"
    documents.write_text("".join(f'{{"id": "{i}", "text": "{i}"}}\n' for i in range(len(old))))
    index = FaissIndex.build(old, [str(i) for i in range(len(old))])
    probes = [(str(i), str(i)) for i in range(len(*change.read("new")) // PROBED)]

    def call():
        start = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=path) as out:
            session = embedflow.migrate(
                index=index,
                old_model=models[0],
                new_model=models[1],
                documents=documents,
                cache_path=f"{out}/cache",
                state_path=f"{out}/state.json",
                probe_queries=probes,
                kmax_probe=PROBED,
            )
            with session:
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

    old, paired, new, queries = change.read("old", "paired", "new", "queries")
    texts = [str(i) for i in range(len(new))]
    profiles = EncodingProfile("old", old.shape[1]), EncodingProfile("new", new.shape[1])

    def call():
        start = time.perf_counter()
        store = MemoryStore(texts, paired, texts)
        embedder = PrecomputedEmbedder(profiles[1], dict(zip(texts, new, strict=True)))
        result, _ = probe_store(store, embedder, size=len(new), heldout=len(new) // 5)
        seconds = time.perf_counter() - start
        with tempfile.TemporaryDirectory() as out:
            described = {"old_profile": profiles[0], "new_profile": profiles[1]}
            file = Path(out, "map.rbs")
            save_adapter(result.adapter, file, direction="query_to_old", **described)
            mapped = Bridge.load(str(file)).to_index_space(queries)
        return Outcome(old, mapped, result.best.arr, seconds, commands=2)

    return call


SENTENCES = "minilm_sentences", "mpnet_sentences", 24_576, 8_000  # arguments of `load`
TITLE = "A store of 23,576 sentences whose model changes, MiniLM to MPNet"
GOAL = ">= 1 at equal or better recall"
NOTE = (
    "Seconds are those of all commands, each a new process: ours are migrate and apply, of "
    "the store and of the queries, those of isotrieve calibrate and transform (its queries "
    "need no command). Both read .npy files. rebasis and embedflow have commands for models, "
    "not for vectors, so that they are called from Python, without the start of a process. "
    "rebasis maps the queries into the old store, by the best of five kinds of maps. "
    "embedflow has no map: the old model's queries search the old store; its probe embeds as "
    "many candidates as the others have pairs. recall@10: of the ten re-embedded rows "
    "nearest to a query of the new model, the share among the ten nearest rows of the store "
    "that is searched: 1,000 queries, 15,576 rows, none of them paired. in 50, 100, 200: the "
    "share of these ten among so many candidates, which is recall@10 after the new model has "
    "put these in order. reported: ours the estimate of recall@10 in the whole store; "
    "isotrieve's top-10 retention and rebasis's ARR, which are measured among the pairs; "
    "embedflow's stability, how many of the ten that the new model puts first among 500 "
    "candidates it puts first among 50. verdict after: the first command or call. FLOPs: the "
    "store times the map."
)
CASES = tuple(Case(f"minilm-mpnet-{n}", n, (*SENTENCES, n), rounds=3) for n in (500, 2_000, 8_000))
QUICK = Case("glove-glove100-500", 500, ("glove", "glove100", 2_000, 500, 500))
IMPLEMENTATIONS = {
    "isthmus": Implementation(_ours, warm_up=False),
    "isotrieve": Implementation(_isotrieve, requires=("isotrieve",), warm_up=False),
    "rebasis": Implementation(_rebasis, requires=("rebasis",), warm_up=False),
    "embedflow": Implementation(_embedflow, requires=("embedflow", "faiss"), warm_up=False),
}
