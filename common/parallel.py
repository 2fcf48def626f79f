"""Rows sharded over devices and streamed in blocks; no other module depends on the devices.

Computations with an n x n matrix use `scan_rows`: each device holds a part of the rows and of the
columns (`pmap`). The rows are sent to all devices block by block, and only reductions of the block
are kept, so that memory is O((n d + block n) / devices). A ring, in which parts of the columns go
from device to device, would have to compute each product twice: what is asked of a column depends
on a sum or maximum over the whole row.

The functions may be called inside `jit`. All devices take part in each of them, since a program has
to run on one set of devices: where there are fewer parts than devices, several devices compute the
same part. On several hosts (`jax.distributed`) each host passes the same complete data and receives
the complete result.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float, Int
from threadpoolctl import threadpool_limits

ACCELERATOR_BYTES = 16 << 30  # of the memory of a device that does not tell it


def devices() -> Sequence[jax.Device]:  # pyright: ignore[reportInvalidTypeForm]  # to it a variable
    """All devices, on all hosts; only this asks JAX, since benchmarks/compiled.py replaces it."""
    return jax.devices()


def on_cpu() -> bool:
    """Whether the devices are CPUs."""
    return devices()[0].platform == "cpu"


def on_tpu() -> bool:
    """Whether the devices are TPUs."""
    return devices()[0].platform == "tpu"


def device_bytes() -> int:
    """The memory of an accelerator, in bytes."""
    stats = jax.local_devices()[0].memory_stats() or {}
    return stats.get("bytes_limit", ACCELERATOR_BYTES)


def one_blas_thread() -> AbstractContextManager:
    """Keeps BLAS, which XLA calls, on one thread: a step took .24 s, and .28 s with two threads."""
    import scipy.linalg  # noqa: F401  # loads the libraries, if nothing else has

    return threadpool_limits(limits=1, user_api="blas")


def replicated(tree: Any) -> Any:
    """The arrays with a copy on each device, for which programs are compiled at once."""
    if len(devices()) == 1:
        return tree
    # By a program, since `device_put` can't place random keys on the devices of other hosts.
    return jax.jit(lambda tree: tree, out_shardings=NamedSharding(_mesh(1), PartitionSpec()))(tree)


def constrain_replicated(tree: Any) -> Any:
    """As `replicated`, for the results of a program, inside it."""
    if len(devices()) == 1:
        return tree
    return lax.with_sharding_constraint(tree, NamedSharding(_mesh(1), PartitionSpec()))


def block_rows(columns: int, parts: int = 1) -> int:
    """Number of rows of a float32 buffer [block, columns / parts], from 256 to 1,024 `parts`.

    About 10 MiB on CPUs, the size of the cache (measured), and a 256th of an accelerator's memory
    (not measured). Below 256 rows the columns' bandwidth is the limit (a tenth longer with 128).
    """
    size = 10 << 20 if on_cpu() else device_bytes() // 256
    return max(256, min(1024 * parts, size * parts // (4 * max(1, columns)) // 8 * 8))


class Part(NamedTuple):
    """Rows of arrays, their places in them, and which are no padding; None: all of them."""

    index: Int[Array, " b"]
    valid: Bool[Array, " b"] | None
    rows: Any

    def masked(self, x: Float[Array, "*_ b"], fill: float) -> Float[Array, "*_ b"]:
        """The numbers of these rows, which are the last axis, with `fill` for padding."""
        return x if self.valid is None else jnp.where(self.valid, x, fill)


def scan_rows(
    step: Callable[[Any, Part, Part], tuple[Any, Any]],
    init: Callable[[Part], Any],
    rows: Any,
    columns: Any,
    *,
    block: Callable[[int, int], int],
) -> tuple[Any, Any]:
    """Folds over blocks of rows, each of which meets all columns, a part of them on each device.

    `step` is `(carry, row_block, column_part) -> (carry, out_block)`. The carry has an entry for
    each column of the part, at first `init(column_part)`; the out_block one for each row, the same
    on all devices, by means of `all_parts`, `sum_of_parts` and the like. Between devices a block's
    places are in ascending order, but those of two blocks may lie between each other.

    `rows` and `columns` are trees of arrays. A device holds its part of both, and a block, of about
    `block(columns, devices)` rows, is sent to all.
    """
    n, m = (jax.tree.leaves(x)[0].shape[0] for x in (rows, columns))
    parts = len(devices())
    blocks = max(1, -(-n // block(m, parts)))  # of no rows one, of padding alone
    # Blocks of equal size, so that a few rows more than one block do not cost a second full one.
    share = max(1, -(-n // (parts * blocks * 8))) * 8

    def part(inputs):
        row_shares, (index, columns) = inputs
        column_part = Part(index, index < m if m % parts else None, columns)

        def body(carry, row_share):
            index, rows = jax.tree.map(all_parts, row_share)
            return step(carry, Part(index, index < n, rows), column_part)

        shares = jax.tree.map(lambda x: x.reshape(blocks, share, *x.shape[1:]), row_shares)
        carry, out = lax.scan(body, init(column_part), shares)
        return out, carry

    def split(tree, count, size):  # with the places of the rows, and n for those of padding
        index = _split(jnp.arange(count, dtype=jnp.int32), parts, size, count)
        return index, jax.tree.map(lambda x: _split(x, parts, size), tree)

    inputs = split(rows, n, blocks * share), split(columns, m, -(-m // parts))
    out, carry = _on_devices(part, parts, inputs, ())

    def in_order(x):
        x = x.reshape(blocks, parts, share, *x.shape[2:]).swapaxes(0, 1)
        return x.reshape(parts, blocks * share, *x.shape[3:])

    return _joined(carry, m), _joined(jax.tree.map(in_order, out), n)


def map_rows(fn: Callable[..., Any], rows: Any, *shared: Any, block: int) -> Any:
    """Applies `fn(row_block, *shared)` to blocks of rows and concatenates the results.

    `rows` is a tree of arrays, of which each device holds a part, and of all `shared` a copy. A
    block has at most `block` rows.
    """
    n, parts = jax.tree.leaves(rows)[0].shape[0], len(devices())
    blocks = max(1, -(-n // (parts * block)))
    block = min(block, max(1, -(-n // (parts * blocks * 8))) * 8)

    def part(rows, *shared):
        split = jax.tree.map(lambda x: x.reshape(blocks, block, *x.shape[1:]), rows)
        out = lax.map(lambda block: fn(block, *shared), split)
        return (), jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), out)

    inputs = jax.tree.map(lambda x: _split(x, parts, blocks * block), rows)
    return _joined(_on_devices(part, parts, inputs, shared)[1], n)


def _split(x: Array, parts: int, size: int, fill: int = 0) -> Array:
    """The rows in equal parts [parts, size, ...], each padded at its end."""
    rest = [(0, 0)] * (x.ndim - 1)
    part = -(-len(x) // parts)
    x = jnp.pad(x, [(0, parts * part - len(x)), *rest], constant_values=fill)
    x = x.reshape(parts, part, *x.shape[1:])
    return jnp.pad(x, [(0, 0), (0, size - part), *rest], constant_values=fill)


def _joined(tree: Any, n: int) -> Any:
    """The n rows of arrays that were split into parts, without their padding."""

    def joined(x):
        x = x[:, : -(-n // len(x))]
        return x.reshape(-1, *x.shape[2:])[:n]

    return jax.tree.map(joined, tree)


def on_parts(fn: Callable[..., tuple[Any, Any]], rows: Any, *shared: Any) -> tuple[Any, Any]:
    """Calls `fn(row_part, *shared) -> (equal, out)` on `num_parts` equal parts of the rows.

    All parts must return the same `equal`, by means of `all_parts`, `mean_of_parts` or
    `sum_of_parts`; `out`, with the rows of the part, is concatenated. `rows` is a tree of arrays,
    whose numbers of rows may differ, and each device receives `shared` completely.
    """
    parts = num_parts(*(x.shape[0] for x in jax.tree.leaves(rows)))
    split = jax.tree.map(lambda x: x.reshape(parts, x.shape[0] // parts, *x.shape[1:]), rows)
    equal, out = _on_devices(fn, parts, split, shared)
    return equal, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), out)


def num_parts(*num_rows: int) -> int:
    """Number of parts in `on_parts`: the largest that divides these and the number of devices."""
    return math.gcd(*num_rows, len(devices()))


def mean_over_devices(fn: Callable[..., Any], rows: Any, *shared: Any) -> Any:
    """The mean of `fn(row_part, *shared)`, a tree of means, over the parts of `on_parts`."""
    return on_parts(lambda *args: (mean_of_parts(fn(*args)), ()), rows, *shared)[0]


def value_and_gradient(loss: Callable[..., Any], parameters: Any, rows: Any, *shared: Any) -> Any:
    """((mean loss, means), gradient) of `loss(parameters, row_part, *shared)` for a batch."""

    def part(rows, parameters, *shared):
        return jax.value_and_grad(loss, has_aux=True)(parameters, rows, *shared)

    return mean_over_devices(part, rows, parameters, *shared)


def all_parts(x: Any, axis: int = 0) -> Any:
    """The arrays of all parts, one after the other along an axis."""
    return _collective(partial(lax.all_gather, axis=axis, tiled=True), x)


def mean_of_parts(x: Any) -> Any:
    """The mean of the values that all parts have; for functions of `on_parts`."""
    return _collective(lax.pmean, x)


def max_of_parts(x: Any) -> Any:
    """The largest of the values that all parts have; for functions of `scan_rows`."""
    return _collective(lax.pmax, x)


def sum_of_parts(x: Any) -> Any:
    """The sum of the values that all parts have; for functions of `on_parts`."""
    return _collective(lax.psum, x)


def _collective(operation: Callable[[Any, str], Any], x: Any) -> Any:
    try:
        return operation(x, "devices")
    except NameError:  # one device has all rows, and there is no mapped axis
        return x


def _mesh(parts: int) -> Mesh:
    """All devices as a grid: a row for each part, in which all devices compute the same."""
    return Mesh(np.reshape(devices(), (parts, -1)), ("devices", "copies"))


def _on_devices(
    part: Callable[..., tuple[Any, Any]], parts: int, inputs: Any, shared: tuple
) -> tuple[Any, Any]:
    """Calls `part(row, *shared) -> (equal, out)` for each of `parts` rows of `inputs`.

    The mapped axis is named "devices". `equal` must be the same for all parts and is returned
    once, `out` is stacked. `parts` divides the number of devices.
    """
    if parts == 1:
        equal, out = part(jax.tree.map(lambda x: x[0], inputs), *shared)
        return equal, jax.tree.map(lambda x: x[None], out)
    if jax.process_count() == 1 and parts == len(devices()):
        in_axes = (0, *(None for _ in shared))
        axes = {"axis_name": "devices", "in_axes": in_axes, "out_axes": (None, 0)}
        return jax.pmap(part, devices=devices(), **axes)(inputs, *shared)

    # pmap maps each device to a part of its own, and on several hosts it would leave on each host
    # the results of its own devices only. With shard_map and all_gather each device, and so each
    # host, receives all results and continues as if it were the only one.
    def gathered(inputs, *shared):
        equal, out = part(jax.tree.map(lambda x: x[0], inputs), *shared)
        return equal, jax.tree.map(lambda x: lax.all_gather(x, "devices"), out)

    sharded, complete = PartitionSpec("devices"), PartitionSpec()
    mapped = jax.shard_map(
        gathered,
        mesh=_mesh(parts),
        in_specs=(sharded, *(complete for _ in shared)),
        out_specs=complete,
        check_vma=False,
    )
    return mapped(inputs, *shared)
