"""Maps of a store between two encoders: those of the tool, and others that are published for it.

  python -m benchmarks.maps

The others are maps of low rank, maps of regions with soft routing and a residual network of two
layers. Each map is fitted to four fifths of the known pairs with each of its settings, of rows that
are centred or not; the setting that keeps most of the nearest rows of the last fifth
(`remapping.choose` has the measure) is fitted to all pairs. Then queries of the new encoder search
the mapped store, which `remapping.kept` compares with the re-embedded one. Writes RESULTS.json and
RESULTS.md into --out. Between the other encoders, with the maps of the tool alone:

  python -m benchmarks.maps --results=maps_of_encoders --maps="orthogonal,ridge,whitened" \
    --spaces=mpnet_sentences:minilm_sentences,wordllama_sentences:minilm_sentences,...
"""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from absl import flags
from jaxtyping import Array, Float
from sklearn.cluster import KMeans

from benchmarks import harness
from common import alignment
from common.data.packages import cache_dir
from common.errors import check_choice
from common.linear import ridge, svd, unit
from common.progress import progress_bar
from common.retrieval import top_k
from common.run import cli
from common.run.results import markdown
from common.spaces import paired_spaces
from isthmus.store import remapping

SPACES = flags.DEFINE_list(
    "spaces", ["minilm_sentences:mpnet_sentences"], "SOURCE:TARGET, spaces of the same items."
)
NUM_ROWS = flags.DEFINE_integer("num_rows", 30_000, "Rows of the store.")
KNOWN_PAIRS = flags.DEFINE_list("known_pairs", ["300", "1000", "10000"], "Numbers of known pairs.")
DRAWS = flags.DEFINE_integer("draws", 3, "Random draws of pairs and queries.")
ONLY = flags.DEFINE_list("maps", [], "Maps to compare; none: all.")
RESULTS = flags.DEFINE_string("results", "maps", "Name of the files of results.")
OUT = flags.DEFINE_string("out", "benchmarks/results", "Folder of the results.")
NUM_QUERIES = 1_000
HIDDEN, BATCH, LEARNING_RATE = 512, 256, 1e-3  # of the residual network

Map = Callable[[Float[Array, "n d"]], Float[Array, "n e"]]


def of_tool(
    method: str, x: Float[Array, "n d"], y: Float[Array, "n e"], penalty: float | None = None
) -> Map:
    """A map of the tool; penalties are in units of the mean eigenvalue."""
    given = () if penalty is None else (penalty * len(x) / x.shape[1],)
    matrix = alignment.METHODS[method](x, y, *given)
    return lambda z: z @ matrix


def low_rank(x: Float[Array, "n d"], y: Float[Array, "n e"], penalty: float, rank: int) -> Map:
    """Ridge onto the directions of the target in which its predictions vary most."""
    whole = of_tool("ridge", x, y, penalty)
    directions = svd(whole(x))[2][:rank]
    return lambda z: whole(z) @ directions.T @ directions


def regions(
    x: Float[Array, "n d"], y: Float[Array, "n e"], penalty: float, count: int, temperature: float
) -> Map:
    """Ridge, and ridge of what it leaves in each region, added with the weights of the regions."""
    whole = of_tool("ridge", x, y, penalty)
    centres = KMeans(count, n_init=1, random_state=0).fit(np.asarray(x)).cluster_centers_
    centres = unit(jnp.asarray(centres, jnp.float32))
    rest = y - whole(x)

    def weights(z):
        return jax.nn.softmax(z @ centres.T / temperature, axis=1)

    def fit(weight):
        scale = jnp.sqrt(weight)[:, None]
        return ridge(scale * x, scale * rest, penalty * len(x) / x.shape[1])

    matrices = jax.lax.map(fit, weights(x).T)

    @jax.jit
    def apply(z):
        parts = zip(weights(z).T, matrices, strict=True)
        return whole(z) + sum(weight[:, None] * (z @ matrix) for weight, matrix in parts)

    return apply


def residual_network(
    x: Float[Array, "n d"], y: Float[Array, "n e"], penalty: float, steps: int
) -> Map:
    """Ridge plus a network of two layers that starts at zero, trained by Adam on cosines."""
    whole, key = of_tool("ridge", x, y, penalty), jax.random.key(0)
    first = jax.random.normal(key, (x.shape[1], HIDDEN)) / np.sqrt(x.shape[1])
    start = {"first": first, "second": jnp.zeros((HIDDEN, y.shape[1]))}
    optimiser = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, steps))

    def apply(parameters, z):
        return whole(z) + jax.nn.gelu(z @ parameters["first"]) @ parameters["second"]

    def loss(parameters, rows):
        return -jnp.mean(jnp.sum(unit(apply(parameters, x[rows])) * unit(y[rows]), axis=1))

    @jax.jit
    def train(parameters):
        def step(carry, index):
            parameters, state = carry
            rows = jax.random.randint(jax.random.fold_in(key, index), (BATCH,), 0, len(x))
            updates, state = optimiser.update(jax.grad(loss)(parameters, rows), state)
            return (optax.apply_updates(parameters, updates), state), None

        carry = parameters, optimiser.init(parameters)
        return jax.lax.scan(step, carry, jnp.arange(steps))[0][0]

    return jax.jit(partial(apply, train(start)))


def each(**values: Iterable) -> list[dict]:
    """All combinations of the values of settings."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


PENALTIES = remapping.Settings().penalties
MAPS: dict[str, tuple[Callable[..., Map], list[dict]]] = {
    "orthogonal": (partial(of_tool, "procrustes"), [{}]),
    "ridge": (partial(of_tool, "ridge"), each(penalty=PENALTIES)),
    "whitened": (partial(of_tool, "whitened_procrustes"), each(penalty=(0.0, *PENALTIES))),
    "low rank": (low_rank, each(penalty=PENALTIES[1:4], rank=(64, 128, 256))),
    "8 regions": (regions, each(penalty=(0.3, 1.0), count=(8,), temperature=(0.05, 0.2))),
    "32 regions": (regions, each(penalty=(0.3, 1.0), count=(32,), temperature=(0.05, 0.2))),
    "residual network": (residual_network, each(penalty=(0.3, 1.0), steps=(100, 300))),
}


def held_out_share(fit: Callable[..., Map], x: Array, y: Array, own: Array, setting: dict) -> float:
    """The share of the nearest rows of the last fifth of the pairs that a map of the others keeps.

    `x` and `y` are the normalised rows of the pairs; the unit target rows `own` tell which rows are
    truly nearest.
    """
    cut = len(x) * 4 // 5
    mapped = unit(fit(x[:cut], y[:cut], **setting)(x[cut:]))
    pairs_of_rows = (own[cut:], own[cut:]), (y[cut:], mapped)
    true, found = (remapping.other_rows(*rows, remapping.NEAREST) for rows in pairs_of_rows)
    return float(remapping.overlap(found, true).mean())


def measured(spaces: str, draw: int) -> Iterator[dict]:
    """A row for each number of pairs and map, of one random draw of queries and pairs."""
    names = spaces.split(":")
    total = NUM_ROWS.value + NUM_QUERIES
    pair = paired_spaces.load(*names, num_words=total, cache=cache_dir(), max_rows=total)
    order = np.random.default_rng(draw).permutation(total)
    asked, store = order[:NUM_QUERIES], order[NUM_QUERIES:]
    old, new = (np.asarray(vectors, np.float32) for vectors in (pair.source, pair.target))
    nearest = np.asarray(top_k(unit(new[asked]), unit(new[store]), remapping.NEAREST)[1])
    for num_pairs in map(int, KNOWN_PAIRS.value):
        rows = store[:num_pairs]
        aligners = [
            alignment.fit("procrustes", old[rows], new[rows], normalise=steps)
            for steps in (alignment.NORMALISE, ("unit",))
        ]
        own = jnp.asarray(unit(new[rows]))
        for name in ONLY.value or MAPS:
            fit, settings = MAPS[name]
            start = time.perf_counter()
            choices = []
            for aligner, setting in product(aligners, settings):
                x, y = aligner.normalise_source(old[rows]), aligner.normalise_target(new[rows])
                choices.append((held_out_share(fit, x, y, own, setting), aligner, setting, x, y))
            share, aligner, setting, x, y = max(choices, key=lambda choice: choice[0])
            mapped = unit(fit(x, y, **setting)(aligner.normalise_source(old[store])))
            kept = remapping.kept(unit(aligner.normalise_target(new[asked])), mapped, nearest)
            yield {
                "spaces": spaces.replace(":", " -> "),
                "num_pairs": num_pairs,
                "map": name,
                "draw": draw,
                "setting": setting | {"centred": aligner is aligners[0]},
                "held_out": share,
                "seconds": time.perf_counter() - start,
                **kept,
            }


def table(rows: list[dict]) -> str:
    """Means and standard deviations over the draws."""
    frame = pd.DataFrame(rows)
    groups = frame.groupby(["spaces", "num_pairs", "map"], sort=False)
    values = groups[["recall_10", "within_100"]].agg(["mean", "std"])
    lines = [
        (*map(str, key), f"{recall:.3f} ± {std:.3f}", f"{within:.3f} ± {within_std:.3f}")
        for key, recall, std, within, within_std in values.itertuples(name=None)
    ]
    return markdown(["Store -> queries", "Pairs", "Map", "Recall@10", "Of ten in 100"], lines)


def main(argv: list[str]) -> None:
    """Measures the maps and prints the table."""
    del argv
    for name in ONLY.value:
        check_choice("map", name, MAPS)
    cases = list(product(SPACES.value, range(DRAWS.value)))
    bar = progress_bar(cases, desc="maps", unit="draw")
    rows = [row for case in bar for row in measured(*case)]
    text = harness.write(
        Path(OUT.value) / RESULTS.value,
        {"versions": harness.versions(), "rows": rows},
        f"# Maps of a store of {NUM_ROWS.value:,} sentences",
        f"{NUM_QUERIES:,} queries; mean and standard deviation over {DRAWS.value} draws of pairs "
        "and queries. Settings and centring are those that keep most of the nearest rows of a "
        "held-out fifth of the pairs.",
        table(rows),
        f"{harness.chip()}. {harness.versions_line()}",
    )
    print(text)


if __name__ == "__main__":
    cli.run(main)
