"""Rows sharded over devices and streamed in blocks; no other module depends on the devices.

Computations with an n x n matrix use `scan_rows`: each device scans a contiguous part of the rows
(`pmap`) block by block and keeps only the reduction of each block, so memory is O(n d + block n).
The functions may be called inside `jit`. All devices take part in each of them, since a program has
to run on one set of devices: where there are fewer parts than devices, several devices compute the
same part. On several hosts (`jax.distributed`) each host passes the same complete data and receives
the complete result.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from threadpoolctl import threadpool_limits

ACCELERATOR_BYTES = 16 << 30  # of the memory of a device that does not tell it


def devices() -> Sequence[jax.Device]:  # pyright: ignore[reportInvalidTypeForm]  # to it a variable
    """All devices of the computation, on all hosts.

    Nothing else asks JAX for them, so that programs can be compiled for devices that are only
    described: benchmarks/compiled.py replaces this function.
    """
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
    """Keeps BLAS and LAPACK, which XLA calls for decompositions, on one thread inside the context.

    The threads of XLA wait for work actively, so that further threads of a decomposition have to
    take turns with them: on two cores a step of self-learning took .28 s with two threads of
    OpenBLAS and .24 s with one.
    """
    import scipy.linalg  # noqa: F401  # loads the libraries, if nothing else has

    return threadpool_limits(limits=1, user_api="blas")


def replicated(tree: Any) -> Any:
    """The arrays with a copy on each of several devices; on one device they are left as they are.

    Programs that are given such arrays are compiled for all devices at once. From arrays without a
    place they would be compiled once more when their own results, which have one, come back.
    """
    if len(devices()) == 1:
        return tree
    # By a program, since `device_put` can't place random keys on the devices of other hosts.
    return jax.jit(lambda tree: tree, out_shardings=NamedSharding(_mesh(1), PartitionSpec()))(tree)


def constrain_replicated(tree: Any) -> Any:
    """As `replicated`, for the results of a program, inside it."""
    if len(devices()) == 1:
        return tree
    return lax.with_sharding_constraint(tree, NamedSharding(_mesh(1), PartitionSpec()))


def block_rows(columns: int) -> int:
    """Number of rows of a float32 buffer [block, columns], from 256 to 1,024.

    On CPUs the buffer has about 10 MiB, the size of the cache (measured at 4,000 columns). On
    accelerators, where few large steps are faster, it has a 256th of the memory (not measured).
    Blocks of fewer than 256 rows are limited by the bandwidth at which the columns are read anew
    (measured on CPUs at 20,000 to 200,000 columns: 128 rows take up to a tenth longer).
    """
    size = 10 << 20 if on_cpu() else device_bytes() // 256
    return max(256, min(1024, size // (4 * columns) // 8 * 8))


def scan_rows(
    step: Callable[..., tuple[Any, Any]],
    init: Any,
    merge: Callable[[Any, Any], Any],
    rows: Any,
    *shared: Any,
    block: int,
) -> tuple[Any, Any]:
    """Folds over blocks of rows; each device folds a part of the blocks, and the parts are merged.

    Args:
      step: `(carry, row_index [block], valid [block], row_block, *shared) -> (carry, out_block)`.
        `valid` is False on padding rows, whose index is n or more; their output is dropped.
      init: initial carry of each part.
      merge: `(carry, carry) -> carry`, merges the carries of two parts, earlier rows first.
      rows: array or tree of arrays with n leading rows.
      *shared: arrays that each device receives completely.
      block: maximal number of rows in a block.

    Returns:
      The merged carry, and the outputs with n leading rows.
    """
    n = jax.tree.leaves(rows)[0].shape[0]
    parts = len(devices())  # of few rows some parts are padding alone
    blocks = -(-n // (parts * block))
    # Blocks of equal size, so that a few rows more than one block do not cost a second full one.
    block = min(block, -(-n // (parts * blocks * 8)) * 8)
    index = jnp.arange(parts * blocks * block, dtype=jnp.int32)

    def split(x):
        padding = [(0, parts * blocks * block - n)] + [(0, 0)] * (x.ndim - 1)
        return jnp.pad(x, padding).reshape(parts, blocks, block, *x.shape[1:])

    def part(blocks, *shared):
        def body(carry, block_in):
            index, rows = block_in
            return step(carry, index, index < n, rows, *shared)

        return lax.scan(body, init, blocks)

    inputs = (index.reshape(parts, blocks, block), jax.tree.map(split, rows))
    if parts == 1:
        carry, out = part(jax.tree.map(lambda x: x[0], inputs), *shared)
        return carry, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:n], out)

    def output_of_part(blocks, *shared):
        return (), part(blocks, *shared)

    _, (carries, out) = _on_devices(output_of_part, parts, inputs, shared)
    carry = jax.tree.map(lambda x: x[0], carries)
    for other in range(1, parts):
        carry = merge(carry, jax.tree.map(lambda x: x[other], carries))  # noqa: B023
    return carry, jax.tree.map(lambda x: x.reshape(-1, *x.shape[3:])[:n], out)


def map_rows(fn: Callable[..., Any], rows: Any, *shared: Any, block: int) -> Any:
    """Applies `fn(row_block, *shared)` to blocks of rows and concatenates the results."""

    def step(carry, index, valid, rows, *shared):
        return carry, fn(rows, *shared)

    return scan_rows(step, (), lambda first, second: first, rows, *shared, block=block)[1]


def on_parts(fn: Callable[..., tuple[Any, Any]], rows: Any, *shared: Any) -> tuple[Any, Any]:
    """Calls `fn` on `num_parts` equal parts of the rows, each on as many of the devices.

    Args:
      fn: `(row_part, *shared) -> (equal, out)`. All parts must return the same `equal`, by means of
        `all_parts`, `mean_of_parts` or `sum_of_parts`; `out` has the rows of the part.
      rows: array or tree of arrays; their numbers of rows may differ, and each is split.
      *shared: arrays that each device receives completely.

    Returns:
      `equal`, and `out` of all parts, concatenated.
    """
    parts = num_parts(*(x.shape[0] for x in jax.tree.leaves(rows)))
    if parts == 1:
        return fn(rows, *shared)
    split = jax.tree.map(lambda x: x.reshape(parts, x.shape[0] // parts, *x.shape[1:]), rows)
    equal, out = _on_devices(fn, parts, split, shared)
    return equal, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), out)


def num_parts(*num_rows: int) -> int:
    """Number of parts in `on_parts` of arrays with these numbers of rows.

    It is the largest number that divides all of them and the number of devices. 500 rows on eight
    devices have four parts, each of which two devices compute.
    """
    return math.gcd(*num_rows, len(devices()))


def mean_over_devices(fn: Callable[..., Any], rows: Any, *shared: Any) -> Any:
    """Averages `fn` over equal parts of the rows, one part on each device.

    For data-parallel training: if `fn` returns the mean loss of a batch and its gradient, the
    results are those of the whole batch up to rounding, for any number of devices.

    Args:
      fn: `(row_part, *shared) -> tree of means over the part's rows`.
      rows: array or tree of arrays with n leading rows, split as in `on_parts`.
      *shared: arrays that each device receives completely.
    """
    return on_parts(lambda *args: (mean_of_parts(fn(*args)), ()), rows, *shared)[0]


def value_and_gradient(loss: Callable[..., Any], parameters: Any, rows: Any, *shared: Any) -> Any:
    """The loss of a batch, means that are returned beside it, and the gradient.

    Args:
      loss: `(parameters, row_part, *shared) -> (mean loss of the rows, tree of their means)`.
      parameters: by which the loss is differentiated.
      rows: the batch, split as in `mean_over_devices`.
      *shared: arrays that each device receives completely.

    Returns:
      ((loss, means), gradient), as `jax.value_and_grad`.
    """

    def part(rows, parameters, *shared):
        return jax.value_and_grad(loss, has_aux=True)(parameters, rows, *shared)

    return mean_over_devices(part, rows, parameters, *shared)


def all_parts(x: Any) -> Any:
    """All rows of a batch, from the part on one device; for functions of `on_parts`."""
    return _collective(partial(lax.all_gather, tiled=True), x)


def mean_of_parts(x: Any) -> Any:
    """The mean of the values that all parts have; for functions of `on_parts`."""
    return _collective(lax.pmean, x)


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
