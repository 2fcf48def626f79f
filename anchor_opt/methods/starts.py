"""Starts of the bootstrap: a first matching from the geometry of both spaces and few or no pairs.

The rows of both spaces are described by numbers that a rotation of a space does not change, and the
descriptions are matched by CSLS. A description joins some of

  pairs      the cosines of a row with the rows in known pairs,
  profiles   its sorted similarities to all rows (Artetxe et al. 2018),
  clusters   its cosines with cluster centres, which are matched by quadratic assignment
             (mini-vec2vec, Dar 2025; Unpaired Rosetta, Schnaus et al. 2026).

The rows are in an order that does not tell which of them belong together.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from common.linear import preprocess, unit
from common.retrieval import csls_dictionary

Centres = Float[Array, "s c d"]
MIN_GAIN = 1e-6  # smallest gain of a swap, which rounding cannot give


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of the starts; those of mini-vec2vec unless marked."""

    num_clusters: int = 20
    num_draws: int = 60  # of rows that are clustered; ours
    draw_rows: int = 10_000  # rows in a draw, all rows if there are fewer
    num_restarts: int = 100  # of each quadratic assignment; ours
    swaps: int = 60  # at most, of a restart; ours


def candidates(
    source: Float[Array, "n d_source"],
    target: Float[Array, "m d_target"],
    pairs: tuple[Int[np.ndarray, " p"], Int[np.ndarray, " p"]],
    settings: Settings,
    random_seed: int,
) -> Iterator[tuple[str, Float[Array, "d_source d_target"]]]:
    """Yields (name, covariance): the sum of x_i y_j' over the rows matched in either direction.

    In the order in which they should be tried: known pairs and profiles, profiles alone, and
    profiles with the cluster centres of both modes (`cluster_modes`). Wrong pairs thus spoil the
    first candidate alone.

    Args:
      source: unit rows.
      target: unit rows.
      pairs: rows of the source and of the target in known pairs.
      settings: of the clusters.
      random_seed: of the clusters.
    """
    spaces = source, target
    width = min(map(len, spaces))
    sorted_rows = [profiles(x, width) for x in spaces]
    if len(pairs[0]):
        known = [_centred(x @ x[rows].T) for x, rows in zip(spaces, pairs, strict=True)]
        yield "pairs", _covariance(spaces, known, sorted_rows)
    yield "profiles", _covariance(spaces, sorted_rows)
    key = jax.random.key(random_seed)
    for number, centres in enumerate(cluster_modes(key, *spaces, settings)):
        yield f"clusters-{number}", centre_covariance(spaces, centres, sorted_rows)


def centre_covariance(
    spaces: tuple[Float[Array, "n d"], Float[Array, "m e"]],
    centres: tuple[Float[Array, "k d"], Float[Array, "k e"]],
    *descriptions: Sequence[Array],
) -> Float[Array, "d e"]:
    """The covariance of the rows matched by their cosines with centres, row i of both matched.

    The cosines are joined with other `descriptions` of the rows of both spaces.
    """
    cosines = [preprocess(x @ unit(c).T) for x, c in zip(spaces, centres, strict=True)]
    return _covariance(spaces, cosines, *descriptions)


def _centred(x: Float[Array, "n f"]) -> Float[Array, "n f"]:
    """Centred rows of mean squared length one; with one column, unit rows would be signs alone."""
    x = x - x.mean(axis=0)
    return x / jnp.sqrt((x**2).sum(axis=1).mean())


def _covariance(spaces, *descriptions) -> Float[Array, "d_source d_target"]:
    """Sum of x_i y_j' over the rows that CSLS of the joined descriptions matches, both ways."""
    joined = (unit(jnp.concatenate(parts, axis=1)) for parts in zip(*descriptions, strict=True))
    found = csls_dictionary(*joined)
    source, target = spaces
    return source.T @ target[found.to_target] + source[found.to_source].T @ target


@partial(jax.jit, static_argnames="width")
def profiles(x: Float[Array, "n d"], width: int) -> Float[Array, "n width"]:
    """Each row's sorted similarities to all rows, preprocessed (Artetxe et al. 2018).

    The similarities are the entries of the square root of the Gram matrix x x', which is held in
    memory; they are interpolated to `width` values, so that spaces of different size can be
    compared.
    """
    left, values, _ = jnp.linalg.svd(x, full_matrices=False)
    rows = jnp.sort((left * values) @ left.T, axis=1)
    return preprocess(jax.image.resize(rows, (len(x), width), "linear"))


def cluster_modes(
    key: jax.Array, source: Float[Array, "n d"], target: Float[Array, "m e"], settings: Settings
) -> list[tuple[Float[Array, "k d"], Float[Array, "k e"]]]:
    """Matched cluster centres of many draws, divided into the two kinds of draws that agree.

    Each draw clusters random rows of each space and matches the centres by `assign`. The optima of
    different draws contradict each other: between word spaces most of them are of two kinds, which
    differ in the sign of a leading axis, and the mean of all draws (Unpaired Rosetta) is neither.
    The covariances M_s of the matched centres are therefore compared by their cosines: the leading
    eigenvector of that [S, S] matrix has one sign on the draws of one kind and the other sign on
    the rest.

    Returns:
      For each kind with at least a tenth of the draws, the more frequent one first: the centres of
      both spaces, all draws joined, row i of both matched.
    """
    centres = matched_centres(
        jax.random.split(key, 3),
        (source, target),
        num_clusters=settings.num_clusters,
        num_draws=settings.num_draws,
        rows=[min(settings.draw_rows, len(x)) for x in (source, target)],
        restarts=settings.num_restarts,
        swaps=settings.swaps,
    )
    left, right = (c - c.mean(axis=1, keepdims=True) for c in centres)
    moments = unit(jnp.einsum("scd,sce->sde", left, right).reshape(settings.num_draws, -1))
    sign = jnp.linalg.eigh(moments @ moments.T)[1][:, -1] > 0
    kinds = [np.flatnonzero(sign), np.flatnonzero(~sign)]
    kinds = [kind for kind in kinds if len(kind) >= settings.num_draws / 10]
    joined = (tuple(c[kind].reshape(-1, c.shape[2]) for c in centres) for kind in kinds)
    return sorted(joined, key=lambda both: -len(both[0]))


def matched_centres(
    keys: Sequence[jax.Array],
    spaces: tuple[Float[Array, "n d"], Float[Array, "m e"]],
    known: tuple[Float[Array, "p d"], Float[Array, "p e"]] | None = None,
    *,
    num_clusters: int,
    num_draws: int,
    rows: Sequence[int],
    restarts: int,
    swaps: int = 60,
) -> tuple[Centres, Centres]:
    """Cluster centres of both spaces for several draws, row i of both matched by `assign`.

    Args:
      keys: of the draws of each space, and of the assignments.
      spaces: unit rows.
      known: rows in known pairs, whose similarities to the centres are the linear term.
      num_clusters: see `draw_centres`, as num_draws.
      num_draws: s.
      rows: rows in a draw of each space.
      restarts: see `assign`, as swaps.
      swaps: at most, of each restart.
    """
    centres = [
        draw_centres(key, x, num_clusters, num_draws, count)
        for key, x, count in zip(keys[:2], spaces, rows, strict=True)
    ]
    known = known or [x[:0] for x in spaces]
    kernels = [
        centred_kernel(jnp.concatenate([c, jnp.broadcast_to(k, (len(c), *k.shape))], axis=1))
        for c, k in zip(centres, known, strict=True)
    ]
    free = [k[:, :num_clusters, :num_clusters] for k in kernels]
    linear = jnp.einsum("sip,sjp->sij", *(k[:, :num_clusters, num_clusters:] for k in kernels))
    matched = assign(keys[2], *free, linear, restarts=restarts, swaps=swaps)
    return centres[0], jnp.take_along_axis(centres[1], matched[:, :, None], axis=1)


@partial(jax.jit, static_argnames=("num_clusters", "num_draws", "rows", "steps"))
def draw_centres(
    key: jax.Array,
    x: Float[Array, "n d"],
    num_clusters: int,
    num_draws: int,
    rows: int,
    steps: int = 15,
) -> Centres:
    """`k_means` of random rows, for several draws.

    Args:
      key: of the draws.
      x: unit rows.
      num_clusters: clusters c of a draw.
      num_draws: s.
      rows: rows in a draw.
      steps: steps of Lloyd's algorithm.

    Returns:
      [s, c, d] the mean row of each cluster; zero for an empty one.
    """

    def draw(key):
        some = x[jax.random.permutation(key, len(x))[:rows]]
        return k_means(some, some[:num_clusters], steps)

    return lax.map(draw, jax.random.split(key, num_draws))


@partial(jax.jit, static_argnames="steps")
def k_means(
    x: Float[Array, "n d"], centres: Float[Array, "c d"], steps: int = 15
) -> Float[Array, "c d"]:
    """Spherical k-means (Dhillon and Modha 2001) of unit rows, from unit centres.

    Returns:
      The mean row of each cluster after `steps` steps of Lloyd's algorithm; zero for an empty one.
    """

    def members(centres):
        return jax.nn.one_hot((x @ centres.T).argmax(axis=1), len(centres))

    def step(centres, _):
        sums = members(centres).T @ x
        return jnp.where(jnp.any(sums != 0, axis=1, keepdims=True), unit(sums), centres), None

    found = members(lax.scan(step, centres, None, length=steps)[0])
    return found.T @ x / jnp.maximum(found.sum(axis=0), 1)[:, None]


def centred_kernel(centres: Centres) -> Float[Array, "s c c"]:
    """The centred kernel of the centres of each draw, of Frobenius norm one."""
    centred = centres - centres.mean(axis=1, keepdims=True)
    kernel = jnp.einsum("sid,sjd->sij", centred, centred)
    return kernel / jnp.linalg.norm(kernel, axis=(1, 2), keepdims=True)


@partial(jax.jit, static_argnames=("restarts", "swaps"))
def assign(
    key: jax.Array,
    source: Float[Array, "s c c"],
    target: Float[Array, "s c c"],
    linear: Float[Array, "s c c"],
    *,
    restarts: int,
    swaps: int,
) -> Int[Array, "s c"]:
    """Quadratic assignment by 2-opt: p that maximises sum_ij A_ij B_p(i)p(j) + 2 sum_i L_ip(i).

    From each random permutation the swap of largest gain is made until none gains. With
    C = B permuted by p and M = A C, swapping p(i) and p(j) gains, for symmetric A and B,

        2 (M_ij + M_ji - M_ii - M_jj - (A_ii - A_ij)(C_ij - C_ii) - (A_ij - A_jj)(C_jj - C_ij))
        + (A_ii - A_jj)(C_jj - C_ii) + 2 (L_ip(j) + L_jp(i) - L_ip(i) - L_jp(j)),

    so that one product gives the gains of all swaps.

    Args:
      key: of the random permutations.
      source: symmetric matrices A of s problems.
      target: symmetric matrices B.
      linear: L.
      restarts: random permutations of each problem, of which the best is returned.
      swaps: swaps at most from each of them.

    Returns:
      p of each problem: the row of B that is matched with each row of A.
    """
    size = source.shape[1]

    def gains(a, b, scores, p):
        c = b[p][:, p]
        m = a @ c + scores[:, p]
        own, a_own, c_own = jnp.diag(m), jnp.diag(a), jnp.diag(c)
        gain = m + m.T - own[:, None] - own - (a_own[:, None] - a) * (c - c_own[:, None])
        gain -= (a - a_own) * (c_own - c)
        return 2 * gain + (a_own[:, None] - a_own) * (c_own - c_own[:, None])

    def solve(problem):
        key, a, b, scores = problem

        def swap(p, _):
            gain = gains(a, b, scores, p)
            i, j = jnp.unravel_index(gain.argmax(), gain.shape)
            return jnp.where(gain[i, j] > MIN_GAIN, p.at[i].set(p[j]).at[j].set(p[i]), p), None

        keys = jax.random.split(key, restarts)
        first = jax.vmap(lambda key: jax.random.permutation(key, size))(keys)
        found = jax.vmap(lambda p: lax.scan(swap, p, None, length=swaps)[0])(first)

        def value(p):
            return jnp.sum(a * b[p][:, p]) + 2 * scores[jnp.arange(size), p].sum()

        return found[jax.vmap(value)(found).argmax()]

    return lax.map(solve, (jax.random.split(key, len(source)), source, target, linear))
