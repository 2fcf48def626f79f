"""Our closed-form baselines of word alignment beside vecmap's own code: same data, P@1 of both.

  git clone https://github.com/artetxem/vecmap
  python -m benchmarks.vecmap --vecmap=vecmap --python=vecmap-env/bin/python
  python -m benchmarks.vecmap --vecmap=vecmap --dimension=380 --methods=artetxe_2018 \
    --out=benchmarks/results/vecmap_380.json

vecmap (Artetxe et al.) runs unchanged in an environment with numpy and scipy. Both read the same
vectors, training pairs and test pairs. Since vecmap needs spaces of equal dimension, the space with
more dimensions is reduced to its principal axes.

Three of the 384 dimensions of MiniLM's vectors are empty. The whitening of vecmap divides by the
rounding errors there (P@1 .83 in float64, less in float32), ours leaves these dimensions out.
Reduced to 380 dimensions, both agree.
"""

import dataclasses
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags
from sklearn.decomposition import PCA

from common.data.packages import cache_dir
from common.linear import unit
from common.run.results import Row, averaged, pivot
from common.run.settings import settings
from common.run.workdir import write_json
from configs.lpl import word_alignment
from lpl import bilingual_data, translation
from lpl.bilingual_data import BilingualData, Split
from lpl.methods import METHODS, MultiStep, Problem
from lpl.translation import Hubness

VECMAP = flags.DEFINE_string("vecmap", None, "Folder of a vecmap checkout.", required=True)
PYTHON = flags.DEFINE_string("python", sys.executable, "Interpreter of an environment for it.")
PAIRS = flags.DEFINE_integer("num_pairs", 1_000, "Training pairs.")
DIMENSION = flags.DEFINE_integer("dimension", 384, "Most dimensions of a space.")
METHODS_ASKED = flags.DEFINE_list(
    "methods", ["artetxe_2016", "artetxe_2018", "smith_2017"], "Methods to compare."
)
RUNS = flags.DEFINE_integer("num_runs", 3, "Random runs, with a split each.")
OUT = flags.DEFINE_string("out", "benchmarks/results/vecmap.json", "File of the results.")

TEMPERATURE = 30.0  # inverse temperature of the inverted softmax, for both
PEERS = {  # our method -> the options of vecmap for it
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
    """Writes word2vec's text format."""
    with path.open("w", encoding="utf-8") as file:
        print(*vectors.shape, file=file)
        for word, vector in zip(words, vectors, strict=True):
            print(word, *(f"{value:.8g}" for value in vector), file=file)


def write_pairs(path: Path, data: BilingualData, rows: Iterable[tuple[int, int]]) -> None:
    """Writes two words in each line."""
    lines = [f"{data.source.words[s]} {data.target.words[t]}\n" for s, t in rows]
    path.write_text("".join(lines), encoding="utf-8")


def run(script: str, *arguments: object) -> str:
    """Runs a script of vecmap and returns what it prints."""
    command = [PYTHON.value, str(Path(VECMAP.value) / script), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def theirs(folder: Path, method: str) -> tuple[dict[str, float], float]:
    """P@1 by retrieval, and the seconds of mapping, with reading and writing."""
    files = folder / "x.txt", folder / "z.txt", folder / "mapped_x.txt", folder / "mapped_z.txt"
    began = time.perf_counter()
    run("map_embeddings.py", *PEERS[method], folder / "train.txt", *files)
    seconds = time.perf_counter() - began
    precision = {}
    for name, chosen in RETRIEVALS.items():
        said = run("eval_translation.py", *files[2:], "-d", folder / "test.txt", *chosen)
        precision[name] = float(re.search(r"Accuracy:\s*([\d.]+)%", said)[1]) / 100
    return precision, seconds


def ours(
    method: MultiStep, problem: Problem, split: Split, hubness: Hubness
) -> tuple[dict[str, float], float]:
    """The same by our code, with hubness over all source words as in vecmap."""
    began = time.perf_counter()
    coordinates = jax.block_until_ready(method.fit(problem))
    seconds = time.perf_counter() - began
    queries, translations = jnp.asarray(split.queries), jnp.asarray(split.translations)
    return {
        name: translation.precision(*coordinates, queries, translations, name, hubness)["p_at_1"]
        for name in RETRIEVALS
    }, seconds


def cut(vectors: np.ndarray, dimension: int) -> np.ndarray:
    """Vectors in the first principal axes, if they have more dimensions."""
    if vectors.shape[1] == dimension:
        return vectors
    return PCA(dimension, random_state=0).fit_transform(unit(vectors)).astype(np.float32)


def compare(data: BilingualData, methods: dict[str, MultiStep], random_seed: int) -> list[Row]:
    """Rows of one pair of spaces and random seed."""
    sizes = settings(bilingual_data.Sizes, word_alignment.get_config())
    split = bilingual_data.split(data, PAIRS.value, random_seed, sizes)
    spaces = data.source.vectors, data.target.vectors
    dimension = min(DIMENSION.value, *(vectors.shape[1] for vectors in spaces))
    x, z = (cut(vectors, dimension) for vectors in spaces)
    problem = Problem(
        source=jnp.asarray(x),
        target=jnp.asarray(z),
        pairs=jnp.asarray(split.train),
        num_pairs=PAIRS.value,
        key=jax.random.key(0),
    )
    hubness = Hubness(hubness_words=len(x), csls_neighbours=10, inverse_temperature=TEMPERATURE)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_vectors(folder / "x.txt", data.source.words, x)
        write_vectors(folder / "z.txt", data.target.words, z)
        write_pairs(folder / "train.txt", data, split.train[: PAIRS.value])
        asked = [
            (query, row)
            for query, rows in zip(split.queries, split.translations, strict=True)
            for row in rows
            if row >= 0
        ]
        write_pairs(folder / "test.txt", data, asked)
        for method, baseline in methods.items():
            results = {
                "vecmap": theirs(folder, method),
                "ours": ours(baseline, problem, split, hubness),
            }
            for code, (precision, seconds) in results.items():
                row = partial(
                    Row,
                    experiment="vecmap",
                    dataset=data.title,
                    method=method,
                    dim=dimension,
                    num_pairs=PAIRS.value,
                    random_seed=random_seed,
                )
                for retrieval, value in precision.items():
                    labels = {"code": code, "retrieval": retrieval}
                    rows.append(row(metric="p_at_1", mean=value, labels=labels))
                labels = {"code": code, "retrieval": "seconds"}
                rows.append(row(metric="seconds", mean=seconds, labels=labels))
    return rows


def main(argv: list[str]) -> None:
    """Measures, writes the numbers, prints the table."""
    del argv
    config = word_alignment.get_config()
    methods = {name: settings(METHODS[name], config[name]) for name in METHODS_ASKED.value}
    rows = []
    for names in (("minilm", "minilm_input", "same"), ("minilm", "french", "wordnet")):
        data = bilingual_data.load(names, max_rows=config.max_rows, cache=cache_dir())
        for random_seed in range(RUNS.value):
            rows += compare(data, methods, random_seed)
    rows = averaged(rows)
    write_json(Path(OUT.value), [dataclasses.asdict(row) for row in rows])
    lines = {"dataset": "Spaces", "method": "Method", "retrieval": "P@1 by, or seconds"}
    print(pivot(rows, lines=lines, columns="code"))


if __name__ == "__main__":
    app.run(main)
