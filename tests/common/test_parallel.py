import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from common import csls, ot, parallel, retrieval
from common.parallel import block_rows, map_rows, one_blas_thread, scan_rows, sum_of_parts
from tests import commands, samples


@partial(jax.jit, static_argnames="block")
def products_of(rows, columns, block):
    """Of each column the sum of its products and its first largest one; of each row their sum."""

    def init(columns):
        lowest = jnp.full(len(columns.index), -jnp.inf)
        return 0 * lowest.clip(0), lowest, jnp.zeros_like(columns.index)

    def step(carry, block, columns):
        total, best, where = carry
        product = columns.masked(block.rows @ columns.rows.T, 0.0)
        value = jnp.where(block.valid[:, None], product, -jnp.inf)
        winner = value.argmax(axis=0)
        value, row = value.max(axis=0), block.index[winner]
        better = (value > best) | ((value == best) & (row < where))
        carry = (
            total + product.sum(0),
            jnp.where(better, value, best),
            jnp.where(better, row, where),
        )
        return carry, sum_of_parts(product.sum(axis=1))

    return scan_rows(step, init, rows, columns, block=lambda columns, parts: block)


@pytest.mark.parametrize("n", [1, 8, 9, 50])
def test_scan_rows_folds_and_concatenates(n):
    rows, columns = (samples.integer_rows(seed, count) for seed, count in ((n, n), (0, 11)))
    (total, best, where), out = products_of(rows, columns, 8)
    product = rows @ columns.T
    np.testing.assert_array_equal(total, product.sum(axis=0))
    np.testing.assert_array_equal(best, product.max(axis=0))
    np.testing.assert_array_equal(where, product.argmax(axis=0))
    np.testing.assert_array_equal(out, product.sum(axis=1))


def test_map_rows_accepts_trees_and_shared_arrays():
    rows = {"a": jnp.arange(21.0), "b": jnp.arange(42).reshape(21, 2)}
    out = map_rows(lambda r, s: (r["a"] * s, r["b"].sum(1)), rows, jnp.float32(3), block=8)
    np.testing.assert_array_equal(out[0], 3 * np.arange(21))
    np.testing.assert_array_equal(out[1], np.arange(42).reshape(21, 2).sum(1))


def test_libraries_of_linear_algebra_have_one_thread_inside_the_context_alone():
    def threads():
        return {x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"}

    with threadpool_limits(limits=3, user_api="blas"):
        before = threads()
        with one_blas_thread():
            assert threads() == {1}
        assert threads() == before


@pytest.mark.parametrize(
    ("gigabytes", "columns", "rows"),
    [
        ("CPU", 10, 1024),
        ("CPU", 4_000, 648),
        ("CPU", 20_000, 256),
        (None, 200_000, 256),
        (16, 200_000, 256),
        (80, 200_000, 416),
        (141, 200_000, 736),
    ],
)
def test_block_rows_depend_on_the_memory(monkeypatch, gigabytes, columns, rows):
    monkeypatch.setattr(parallel, "on_cpu", lambda: gigabytes == "CPU")
    told = {"bytes_limit": gigabytes << 30} if isinstance(gigabytes, int) else None
    device = SimpleNamespace(memory_stats=lambda: told)
    monkeypatch.setattr(jax, "local_devices", lambda: [device])
    assert block_rows(columns) == rows


@pytest.mark.parametrize(
    "streamed",
    [
        lambda x, y: ot.match(x, y, 1e-4, rows=True),
        lambda x, y: retrieval.top_k(x, y, 10),
        lambda x, y: csls.top_k(x, y, 10),
    ],
    ids=("match", "top_k", "csls_top_k"),
)
def test_no_square_buffer_at_20_000_rows(streamed):
    """The memory of the compiled programs; an n x n buffer would have 1,526 MiB."""
    rows = jax.ShapeDtypeStruct((20_000, 300), jnp.float32)
    memory = jax.jit(streamed).lower(rows, rows).compile().memory_analysis()
    # Blocks of an accelerator have up to 1,024 rows, of which it holds two or three (78 MiB each).
    assert memory.temp_size_in_bytes < (100 if parallel.on_cpu() else 300) << 20


SPLIT = """
import jax, jax.numpy as jnp
import common
from common import csls, ot, parallel, retrieval
from jax.sharding import NamedSharding, PartitionSpec
split = NamedSharding(parallel._mesh(8), PartitionSpec("devices"))
rows = jax.ShapeDtypeStruct((80_000, 64), jnp.float32, sharding=split)
for name, search in {
    "match": lambda x, y: ot.match(x, y, 1e-4, rows=True),
    "matches": csls.matches,
    "top_k": lambda x, y: retrieval.top_k(x, y, 10),
}.items():
    memory = jax.jit(search).lower(rows, rows).compile().memory_analysis()
    print(name, memory.argument_size_in_bytes, memory.temp_size_in_bytes)
"""


def test_eight_devices_hold_an_eighth_of_both_spaces_each():
    """An array of all rows has 19.5 MiB, a block of 256 of them with all columns 78 MiB."""
    command = [sys.executable, "-c", SPLIT]
    told = subprocess.run(command, env=commands.on_devices(8), check=True, stdout=subprocess.PIPE)
    for line in told.stdout.decode().splitlines():
        name, arguments, temporary = line.split()
        assert int(arguments) < 6 << 20, name
        assert int(temporary) < 60 << 20, name


@pytest.mark.slow
def test_sizes_around_devices_and_blocks_have_the_numbers_of_one_device():
    """tests/sharded.py draws the sizes in a process with three devices."""
    command = [sys.executable, "-m", "tests.sharded", "3"]
    subprocess.run(command, env=commands.on_devices(3), check=True)
