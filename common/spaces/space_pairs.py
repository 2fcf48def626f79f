"""What two spaces with known items have in common, before any method has run.

Labels of the rows: `pair` is the number of the pair in the table and the figure.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from matplotlib.figure import Figure

from common.errors import UserError
from common.linear import least_squares, preprocess, procrustes, unit, whitening
from common.metrics import correspondence, linear_cka, mrr, precision_at_k
from common.retrieval import top_k
from common.run.figures import COLOURS
from common.run.results import Row, markdown, measured, select

COLUMNS = {  # (method, metric) -> title of the column
    ("truth", "linear_cka"): "CKA",
    ("orthogonal", "p_at_1"): "Orthogonal: P@1",
    ("orthogonal", "mrr"): "MRR",
    ("least_squares", "p_at_1"): "Least squares: P@1",
    ("least_squares", "mrr"): "MRR",
    ("gt", "jaccard"): "True anchors: Jaccard",
    ("gt", "mrr"): "MRR",
}
NOTES = (
    "Unit, centred, unit vectors. CKA: linear centred kernel alignment of all true pairs. "
    "Orthogonal, Least squares: a linear map from source to target, fitted on a random half of the "
    "true pairs and measured on the other half, whose partners are sought among all items by "
    "cosine. True anchors: relative representations by {num_anchors} random items. MRR and Jaccard "
    "of lists of {k}; mean and standard deviation over random seeds. minilm and minilm_input are "
    "two layers of one model."
)


def names(pair: str) -> tuple[str, str]:
    """The names of both spaces of a pair.

    Args:
      pair: SOURCE:TARGET, a value of config.pairs.

    Raises:
      UserError: the pair has no colon.
    """
    source, colon, target = pair.partition(":")
    if not colon:
        raise UserError(f"'{pair}' of config.pairs is no pair: write SOURCE:TARGET.")
    return source, target


def file_name(source: str, target: str) -> str:
    """A pair of names, or of paths, as a part of the name of a file."""
    return f"{source}-{target}".replace("/", "_").replace(" ", "_")


def noisy_isometry(
    key: jax.Array, x: Float[Array, "n d"], noise: float | Float[Array, ""]
) -> Float[Array, "n d"]:
    """A rotated copy of a space, with Gaussian noise of the space's own covariance.

    y = p((x + noise G C^(1/2)) Q), where C is the covariance of the rows of x, G has independent
    standard normal entries, Q is a random orthogonal matrix and p is `common.linear.preprocess`. In
    each direction the noise has `noise` times the standard deviation of the space. Before p, the
    linear CKA of x and y is about 1 / (1 + noise^2) for many rows.

    Args:
      key: of the random numbers.
      x: preprocessed rows.
      noise: at least 0; 0 is an isometry.

    Returns:
      Preprocessed rows; row i is the copy of row i of x.
    """
    normal, rotation = jax.random.split(key)
    root = whitening(x - x.mean(axis=0), -1.0)
    moved = x + noise * jax.random.normal(normal, x.shape) @ root
    return preprocess(moved @ jax.random.orthogonal(rotation, x.shape[1]))


def measure(
    source: Float[Array, "n d"],
    target: Float[Array, "n e"],
    *,
    num_anchors: int,
    k: int,
    random_seeds: Sequence[int],
) -> list[dict]:
    """Fields of `Row`, with `value` and `random_seed`, for the metrics in `COLUMNS`.

    Args:
      source: preprocessed rows.
      target: preprocessed rows; row i of both is the same item.
      num_anchors: number of true anchors, at most n.
      k: length of the lists of retrieved items.
      random_seeds: of the anchors and the halves.
    """

    def row(method: str, metric: str, value: Array, **other) -> dict:
        return {"method": method, "metric": metric, "value": float(value), **other}

    rows = [row("truth", "linear_cka", linear_cka(source, target), random_seed=0)]
    for random_seed in random_seeds:
        order = np.random.default_rng(random_seed).permutation(len(source))
        half, anchors = len(source) // 2, order[:num_anchors]
        for method, fit in (("orthogonal", procrustes), ("least_squares", least_squares)):
            values = _held_out(source, target, order[:half], order[half:], fit, k)
            rows += [row(method, *value, random_seed=random_seed) for value in values.items()]
        relative = {
            "source": unit(source @ source[anchors].T),
            "target": unit(target @ target[anchors].T),
        }
        values = correspondence(relative, k)["source", "target"]
        for metric in ("jaccard", "mrr"):
            rows.append(row("gt", metric, values[metric], random_seed=random_seed))
    return rows


def _held_out(
    source: Float[Array, "n d"],
    target: Float[Array, "n e"],
    fitted: Int[np.ndarray, " a"],
    tested: Int[np.ndarray, " b"],
    fit,
    k: int,
) -> dict[str, Array]:
    """P@1 and MRR of `tested` rows under the map that `fit` finds on `fitted` rows."""
    mapped = unit(source[tested] @ fit(source[fitted], target[fitted]))
    _, found = top_k(mapped, target, k)
    truth = jnp.asarray(tested)
    return {"p_at_1": precision_at_k(found, truth, 1), "mrr": mrr(found, truth)}


def table(rows: Sequence[Row]) -> str:
    """A Markdown table with a line for each pair of spaces."""
    body = []
    for number in dict.fromkeys(row.get("pair") for row in rows):
        found = select(rows, pair=number)
        first = found[0]
        dims = f"{first.get('source_dim')} -> {first.dim}"
        cells = [str(number), first.source, first.target, dims, f"{first.get('shared'):,}"]
        for method, metric in COLUMNS:
            (one,) = select(found, method=method, metric=metric)
            cells.append(measured(one))
        body.append([*cells[:5], f"{first.num_items:,}", *cells[5:]])
    header = ("No.", "Source", "Target", "Dimensions", "Shared", "Measured", *COLUMNS.values())
    return markdown(header, body)


def figure(rows: Sequence[Row]) -> Figure:
    """MRR of the linear maps and of true anchors over the CKA of each pair."""
    figure = Figure(figsize=(9, 4.8), layout="constrained")
    axis = figure.subplots()
    cka = {row.get("pair"): row for row in select(rows, metric="linear_cka")}
    methods = {
        "gt": "relative representations, true anchors",
        "orthogonal": "orthogonal map",
        "least_squares": "least-squares map",
    }
    for (method, label), colour, marker in zip(methods.items(), COLOURS, "os^", strict=False):
        found = select(rows, method=method, metric="mrr")
        x = [cka[row.get("pair")].mean for row in found]
        y, error = [row.mean for row in found], [row.std for row in found]
        style = {"color": colour, "marker": marker, "ms": 5, "ls": "", "label": label}
        axis.errorbar(x, y, error, **style)
    axis.legend(loc="lower right", frameon=False)
    names = []
    for number, row in cka.items():
        height = max(one.mean for one in select(rows, pair=number, metric="mrr"))
        offset = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
        axis.annotate(str(number), (row.mean, height), fontsize=8, **offset)
        names += axis.plot([], [], " ", label=f"{number}  {row.source} -> {row.target}")
    axis.set(xlabel="linear CKA of the true pairs", ylabel="MRR", ylim=(0, 1.08))
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(handles=names, loc="outside right upper", frameon=False, fontsize=8)
    axis.set_title("How well items find each other, given the truth", loc="left")
    return figure
