"""Cluster centres of two spaces, matched by quadratic assignment without known pairs."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from common.arrays import AnyArray
from common.linear import unit

Centres = Float[Array, "s c _"]
MIN_GAIN = 1e-6  # smallest gain of a swap, which rounding cannot give
STEPS = 15  # of k-means


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of `matched_centres`; those of mini-vec2vec unless marked."""

    num_clusters: int = 20
    num_draws: int = 60  # samples of rows that are clustered; ours
    draw_rows: int = 10_000  # rows in a sample, all rows if there are fewer
    num_restarts: int = 100  # of each quadratic assignment; ours
    swaps: int = 60  # at most, of a restart; ours


def matched_centres(
    keys: Key[Array, " 3"],
    spaces: tuple[Float[AnyArray, "n d"], Float[AnyArray, "m e"]],
    settings: Settings,
    known: tuple[Float[AnyArray, "p d"], Float[AnyArray, "p e"]] | None = None,
) -> tuple[Centres, Centres]:
    """Cluster centres of both spaces for several samples, row i of both matched by `assign`.

    `keys` are of the samples of each space and of the assignments; the similarities of `known`, the
    rows in known pairs, to the centres are the linear term.
    """
    sizes, most = (settings.num_clusters, settings.num_draws), settings.draw_rows
    centres = [
        sample_centres(key, x, *sizes, min(most, len(x)))
        for key, x in zip(keys[:2], spaces, strict=True)
    ]
    objective = _objective(centres, known or (spaces[0][:0], spaces[1][:0]))
    restarts, swaps = settings.num_restarts, settings.swaps
    matched = assign(keys[2], *objective, restarts=restarts, swaps=swaps)
    return centres[0], jnp.take_along_axis(centres[1], matched[:, :, None], axis=1)


@jax.jit
def _objective(centres, known) -> tuple[Float[Array, "s c c"], ...]:
    """The kernels of the centres of both spaces, and the linear term, see `assign`."""
    kernels = [
        _centred_kernel(jnp.concatenate([c, jnp.broadcast_to(k, (len(c), *k.shape))], axis=1))
        for c, k in zip(centres, known, strict=True)
    ]
    free = centres[0].shape[1]
    linear = jnp.einsum("sip,sjp->sij", *(k[:, :free, free:] for k in kernels))
    return *(k[:, :free, :free] for k in kernels), linear


@partial(jax.jit, static_argnames=("num_clusters", "num_samples", "rows"))
def sample_centres(
    key: jax.Array, x: Float[Array, "n d"], num_clusters: int, num_samples: int, rows: int
) -> Centres:
    """The c centres of `k_means` of random rows, for s samples of `rows` rows each."""

    def centres(key):
        sample = x[jax.random.permutation(key, len(x))[:rows]]
        return k_means(sample, sample[:num_clusters])

    return lax.map(centres, jax.random.split(key, num_samples))


@jax.jit
def k_means(x: Float[Array, "n d"], centres: Float[Array, "c d"]) -> Float[Array, "c d"]:
    """The mean row, 0 if it is empty, of each cluster of unit rows, from unit centres.

    By spherical k-means (Dhillon and Modha 2001), in so many steps of Lloyd's algorithm.
    """

    def members(centres):
        return jax.nn.one_hot((x @ centres.T).argmax(axis=1), len(centres))

    def step(centres, _):
        sums = members(centres).T @ x
        return jnp.where(jnp.any(sums != 0, axis=1, keepdims=True), unit(sums), centres), None

    of_cluster = members(lax.scan(step, centres, None, length=STEPS)[0])
    return of_cluster.T @ x / jnp.maximum(of_cluster.sum(axis=0), 1)[:, None]


def _centred_kernel(centres: Centres) -> Float[Array, "s c c"]:
    """Of the centres of each sample, of Frobenius norm one."""
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

    so that one product gives the gains of all swaps. A are the `source` of s problems, B the
    `target` and L `linear`; `swaps` are made at most from each of `restarts` permutations, of which
    the best is returned: the row of B that is matched with each row of A.
    """
    size = source.shape[1]

    def solve(problem):
        key, a, b, scores = problem

        def swap(p):
            gain = _swap_gains(a, b, scores, p)
            i, j = jnp.unravel_index(gain.argmax(), gain.shape)
            gains = gain[i, j] > MIN_GAIN
            return jnp.where(gains, p.at[i].set(p[j]).at[j].set(p[i]), p), gains

        def value(p):
            return jnp.sum(a * b[p][:, p]) + 2 * scores[jnp.arange(size), p].sum()

        def swap_in_each(state):
            count, optima, _ = state
            return count + 1, *jax.vmap(swap)(optima)

        def some_gains(state):
            return (state[0] < swaps) & state[2].any()

        keys = jax.random.split(key, restarts)
        initial = jax.vmap(lambda key: jax.random.permutation(key, size))(keys)
        start = 0, initial, jnp.ones(restarts, bool)
        optima = lax.while_loop(some_gains, swap_in_each, start)[1]
        return optima[jax.vmap(value)(optima).argmax()]

    return lax.map(solve, (jax.random.split(key, len(source)), source, target, linear))


def _swap_gains(a, b, scores, p) -> Float[Array, "c c"]:
    """The gain of each swap in `assign`."""
    c = b[p][:, p]
    m = a @ c + scores[:, p]
    own, a_own, c_own = jnp.diag(m), jnp.diag(a), jnp.diag(c)
    gain = m + m.T - own[:, None] - own - (a_own[:, None] - a) * (c - c_own[:, None])
    gain -= (a - a_own) * (c_own - c)
    return 2 * gain + (a_own[:, None] - a_own) * (c_own - c_own[:, None])
