"""Rows sharded over devices and streamed in blocks: the only place that knows about devices.

Everything that would be an n x n matrix goes through `scan_rows`: each device takes a contiguous
part of the rows (`pmap`), walks over it in blocks, and keeps only what a block is reduced to, so
memory is O(n d + block n). Functions here may be called inside `jit`. On several hosts
(`jax.distributed`) each gives all of the same data, and gets all of the result.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec


def block_rows(columns: int) -> int:
    """Rows of a block of a float32 [block, columns] buffer.

    On CPUs the buffer should stay near the cache (measured at 4,000 columns); accelerators want few
    large steps: a 256th of their memory (not measured yet). Below 256 rows the products wait for
    the columns, which each block reads anew (measured on CPUs at 20,000 to 200,000 columns: 128
    rows take up to a tenth longer).
    """
    size = 10 << 20
    if jax.default_backend() != "cpu":
        told = jax.local_devices()[0].memory_stats() or {}
        size = told.get("bytes_limit", 16 << 30) // 256
    return max(256, min(1024, size // (4 * columns) // 8 * 8))


def scan_rows(
    step: Callable[..., tuple[Any, Any]],
    init: Any,
    merge: Callable[[Any, Any], Any],
    rows: Any,
    *shared: Any,
    block: int,
) -> tuple[Any, Any]:
    """Folds over blocks of rows, on every device over its own part, and merges the parts.

    Args:
      step: `(carry, row_index [block], valid [block], row_block, *shared) -> (carry, out_block)`.
        `valid` is False on padding rows, whose index is past the end; their output is dropped.
      init: the carry at the start of every device's part.
      merge: `(carry, carry) -> carry`, joins two parts, earlier rows first.
      rows: array or tree of arrays with n leading rows.
      *shared: arrays that every device sees whole.
      block: the most rows of one block.

    Returns:
      The merged carry, and the outputs with n leading rows.
    """
    n = jax.tree.leaves(rows)[0].shape[0]
    devices = jax.device_count()
    if jax.process_count() == 1:  # else every host has to take part
        devices = min(devices, -(-n // block))
    blocks = -(-n // (devices * block))
    # Even blocks: a few rows more than one block must not cost two.
    block = min(block, -(-n // (devices * blocks * 8)) * 8)
    index = jnp.arange(devices * blocks * block, dtype=jnp.int32)

    def split(x):
        padding = [(0, devices * blocks * block - n)] + [(0, 0)] * (x.ndim - 1)
        return jnp.pad(x, padding).reshape(devices, blocks, block, *x.shape[1:])

    def part(blocks, *shared):
        def body(carry, block_in):
            index, rows = block_in
            return step(carry, index, index < n, rows, *shared)

        return lax.scan(body, init, blocks)

    inputs = (index.reshape(devices, blocks, block), jax.tree.map(split, rows))
    if devices == 1:
        carry, out = part(jax.tree.map(lambda x: x[0], inputs), *shared)
        return carry, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:n], out)
    carries, out = _spread(part, devices, inputs, shared, equal=False)
    carry = jax.tree.map(lambda x: x[0], carries)
    for device in range(1, devices):
        carry = merge(carry, jax.tree.map(lambda x: x[device], carries))  # noqa: B023
    return carry, jax.tree.map(lambda x: x.reshape(-1, *x.shape[3:])[:n], out)


def map_rows(fn: Callable[..., Any], rows: Any, *shared: Any, block: int) -> Any:
    """Applies `fn(row_block, *shared)` to blocks of rows on all devices, results concatenated."""
    _, out = scan_rows(
        lambda carry, index, valid, rows, *shared: (carry, fn(rows, *shared)),
        (),
        lambda first, second: first,
        rows,
        *shared,
        block=block,
    )
    return out


def mean_over_devices(fn: Callable[..., Any], rows: Any, *shared: Any) -> Any:
    """What `fn` averages over all rows, each device averaging over an equal part of them.

    For data-parallel training: with `fn` the loss and gradient of a batch's mean loss, the results
    are those of the whole batch to rounding, whatever the number of devices.

    Args:
      fn: `(row_part, *shared) -> tree of means over the part's rows`.
      rows: array or tree of arrays with n leading rows; as many devices take part as divide n
        (of several hosts all, or each by itself does all of it).
      *shared: arrays that every device sees whole.
    """
    n = jax.tree.leaves(rows)[0].shape[0]
    devices = math.gcd(n, jax.device_count())
    if devices == 1 or (devices < jax.device_count() and jax.process_count() > 1):
        return fn(rows, *shared)

    def mean(part, *shared):
        return lax.pmean(fn(part, *shared), "devices")

    parts = jax.tree.map(lambda x: x.reshape(devices, n // devices, *x.shape[1:]), rows)
    return _spread(mean, devices, parts, shared, equal=True)


def _spread(part: Callable, devices: int, inputs: Any, shared: tuple, *, equal: bool) -> Any:
    """Calls `part` on every device with its own of `inputs`, along an axis named "devices".

    Args:
      part: of a device.
      devices: the first so many take part; of several hosts all.
      inputs: with `devices` leading rows.
      shared: arrays that every device sees whole.
      equal: whether all results are equal; they are not stacked then.
    """
    chosen = jax.devices()[:devices]
    if jax.process_count() == 1:
        in_axes = (0, *(None for _ in shared))
        spread = jax.pmap(part, axis_name="devices", in_axes=in_axes, devices=chosen)
        out = spread(inputs, *shared)
        return jax.tree.map(lambda x: x[0], out) if equal else out

    # What pmap is made of. By itself it leaves on each host its own devices' results alone; here
    # every host gets all of them, and goes on as if it were the only one.
    def everywhere(inputs, *shared):
        out = part(jax.tree.map(lambda x: x[0], inputs), *shared)
        return out if equal else jax.tree.map(lambda x: lax.all_gather(x, "devices"), out)

    one, whole = PartitionSpec("devices"), PartitionSpec()
    spread = jax.shard_map(
        everywhere,
        mesh=Mesh(np.array(chosen), ("devices",)),
        in_specs=(one, *(whole for _ in shared)),
        out_specs=whole,
        check_vma=False,
    )
    return spread(inputs, *shared)
