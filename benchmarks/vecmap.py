"""Our closed-form baselines of word alignment beside vecmap's own code: same data, P@1 of both.

  git clone https://github.com/artetxem/vecmap
  python -m benchmarks.vecmap --vecmap=vecmap --python=vecmap-env/bin/python

vecmap (Artetxe et al.) runs as it is, in an environment of its own that has numpy and scipy; both
read the same vectors, training pairs and test pairs. It takes spaces of one dimension alone, so
source and target are cut to the smaller one's by their principal axes where they differ.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags
from sklearn.decomposition import PCA

from common.data.wheels import cache_dir
from common.report import markdown, plus_minus, summarise
from configs.lpl import word_alignment
from lpl import cases, translation
from lpl.cases import Case
from lpl.methods import METHODS, Problem

VECMAP = flags.DEFINE_string("vecmap", None, "Folder of a vecmap checkout.", required=True)
PYTHON = flags.DEFINE_string("python", sys.executable, "Interpreter of an environment for it.")
PAIRS = flags.DEFINE_integer("num_pairs", 1_000, "Training pairs.")
SEEDS = flags.DEFINE_integer("random_seeds", 3, "Random seeds, of the split.")
OUT = flags.DEFINE_string("out", "benchmarks/results/vecmap.json", "Where the numbers go.")

TEMPERATURE = 30.0  # inverse, of the inverted softmax; of both
PEERS = {  # our method -> how vecmap is asked for the same, before the dictionary
    "artetxe_2016": ["--emnlp2016"],
    "artetxe_2018": ["--aaai2018"],
    "smith_2017": ["--normalize", "unit", "--orthogonal", "--init_dictionary"],
}
RETRIEVALS = {
    "nn": ["--retrieval", "nn"],
    "csls": ["--retrieval", "csls"],
    "inverted_softmax": ["--retrieval", "invsoftmax", "--inv_temperature", str(TEMPERATURE)],
}


def write_vectors(path: Path, words: list[str], vectors: np.ndarray) -> None:
    """word2vec's text format."""
    with path.open("w", encoding="utf-8") as file:
        print(*vectors.shape, file=file)
        for word, vector in zip(words, vectors, strict=True):
            print(word, *(f"{value:.8g}" for value in vector), file=file)


def write_pairs(path: Path, case: Case, rows: Iterable[tuple[int, int]]) -> None:
    """Two words a line."""
    lines = [f"{case.words[0][source]} {case.words[1][target]}\n" for source, target in rows]
    path.write_text("".join(lines), encoding="utf-8")


def run(script: str, *arguments: object) -> str:
    """What a script of vecmap prints."""
    command = [PYTHON.value, str(Path(VECMAP.value) / script), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def theirs(folder: Path, method: str) -> tuple[dict[str, float], float]:
    """P@1 by retrieval, and the seconds of mapping, reading and writing included."""
    files = folder / "x.txt", folder / "z.txt", folder / "mapped_x.txt", folder / "mapped_z.txt"
    began = time.perf_counter()
    run("map_embeddings.py", *PEERS[method], folder / "train.txt", *files)
    seconds = time.perf_counter() - began
    found = {}
    for name, chosen in RETRIEVALS.items():
        said = run("eval_translation.py", *files[2:], "-d", folder / "test.txt", *chosen)
        found[name] = float(re.search(r"Accuracy:\s*([\d.]+)%", said)[1]) / 100
    return found, seconds


def ours(method: str, problem: Problem, queries, gold, config) -> tuple[dict[str, float], float]:
    """The same by our code, hubness over all source words as vecmap has it."""
    began = time.perf_counter()
    mapped = jax.block_until_ready(METHODS[method](problem, config[method], None, ""))
    seconds = time.perf_counter() - began
    precision: Callable = translation.precision
    return {
        name: precision(*mapped, jnp.asarray(queries), jnp.asarray(gold), name, config)["p_at_1"]
        for name in RETRIEVALS
    }, seconds


def cut(vectors: np.ndarray, dimension: int) -> np.ndarray:
    """The first principal axes, of vectors that have more dimensions."""
    if vectors.shape[1] == dimension:
        return vectors
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return PCA(dimension, random_state=0).fit_transform(unit).astype(np.float32)


def compare(case: Case, random_seed: int, config) -> list[dict]:
    """Rows of one pair of spaces and random seed."""
    pairs, queries, gold = cases.split(case, config, random_seed)
    dimension = min(vectors.shape[1] for vectors in case.vectors)
    x, z = (cut(vectors, dimension) for vectors in case.vectors)
    problem = Problem(
        jnp.asarray(x), jnp.asarray(z), jnp.asarray(pairs), PAIRS.value, jax.random.key(0)
    )
    config.hubness_words = len(x)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_vectors(folder / "x.txt", case.words[0], x)
        write_vectors(folder / "z.txt", case.words[1], z)
        write_pairs(folder / "train.txt", case, pairs[: PAIRS.value])
        asked = [(q, g) for q, row in zip(queries, gold, strict=True) for g in row if g >= 0]
        write_pairs(folder / "test.txt", case, asked)
        for method in PEERS:
            measured = {
                "vecmap": theirs(folder, method),
                "ours": ours(method, problem, queries, gold, config),
            }
            for code, (found, seconds) in measured.items():
                shared = {"case": case.title, "method": method, "code": code}
                shared |= {"dim": dimension, "num_pairs": PAIRS.value, "random_seed": random_seed}
                rows += [
                    shared | {"retrieval": retrieval, "metric": "p_at_1", "value": value}
                    for retrieval, value in found.items()
                ]
                rows.append(shared | {"retrieval": "", "metric": "seconds", "value": seconds})
    return rows


def main(argv: list[str]) -> None:
    """Measures, keeps the numbers, prints the table."""
    del argv
    config = word_alignment.get_config().unlock()
    config.sources, config.targets = ("minilm", "minilm"), ("minilm_input", "french")
    config.dictionaries = ("same", "wordnet")
    config.sizes = (PAIRS.value,)
    config.inverse_temperature = TEMPERATURE
    rows = []
    for case in cases.load(config, cache_dir()):
        for random_seed in range(SEEDS.value):
            rows += compare(case, random_seed, config)
    rows = summarise(rows)
    Path(OUT.value).parent.mkdir(parents=True, exist_ok=True)
    Path(OUT.value).write_text(json.dumps(rows, indent=1) + "\n")
    lines: dict[tuple, dict] = {}
    for row in rows:
        line = lines.setdefault((row["case"], row["method"], row["retrieval"] or "seconds"), {})
        line[row["code"]] = row["mean"], row["std"]
    cells = []
    for name, line in lines.items():
        places = 1 if name[-1] == "seconds" else 3
        numbers = [plus_minus(*line[code], places) for code in ("vecmap", "ours")]
        cells.append((*name, *numbers, f"{line['ours'][0] - line['vecmap'][0]:+.{places}f}"))
    print(markdown(("Spaces", "Method", "P@1 by", "vecmap", "Ours", "Difference"), cells))


if __name__ == "__main__":
    app.run(main)
