import subprocess
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from common import csls, ot, parallel, retrieval
from common.parallel import block_rows, map_rows, one_blas_thread, scan_rows
from tests import commands


def column_sums_and_first_argmax(x, block):
    """A carry that depends on the order of the parts, and one output for each row."""

    def step(carry, index, valid, rows):
        total, best, where = carry
        value = jnp.where(valid, rows[:, 0], -jnp.inf)
        winner = value.argmax()
        better = value[winner] > best
        new = jnp.where(better, value[winner], best), jnp.where(better, index[winner], where)
        return (total + jnp.where(valid[:, None], rows, 0).sum(0), *new), rows * 2

    def merge(a, b):
        better = b[1] > a[1]
        return a[0] + b[0], jnp.where(better, b[1], a[1]), jnp.where(better, b[2], a[2])

    init = jnp.zeros(x.shape[1]), jnp.float32(-jnp.inf), jnp.int32(0)
    return scan_rows(step, init, merge, x, block=block)


@pytest.mark.parametrize("n", [1, 8, 9, 50])
def test_scan_rows_folds_and_concatenates(n):
    x = jnp.asarray(np.random.default_rng(n).integers(-3, 4, (n, 2)), jnp.float32)
    (total, best, where), out = jax.jit(column_sums_and_first_argmax, static_argnums=1)(x, 8)
    np.testing.assert_array_equal(total, x.sum(0))
    assert (float(best), int(where)) == (float(x[:, 0].max()), int(x[:, 0].argmax()))
    np.testing.assert_array_equal(out, 2 * x)


def test_map_rows_accepts_trees_and_shared_arrays():
    rows = {"a": jnp.arange(21.0), "b": jnp.arange(42).reshape(21, 2)}
    out = map_rows(lambda r, s: (r["a"] * s, r["b"].sum(1)), rows, jnp.float32(3), block=8)
    np.testing.assert_array_equal(out[0], 3 * np.arange(21))
    np.testing.assert_array_equal(out[1], np.arange(42).reshape(21, 2).sum(1))


def test_blocks_have_equal_size_so_that_little_is_padded():
    padded = []

    def size(rows):
        padded.append(rows.shape[0])
        return rows

    assert map_rows(size, jnp.zeros((1025, 1)), block=1024).shape == (1025, 1)
    assert 2 * padded[-1] <= 1025 + 8 * 2


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


@pytest.mark.slow
def test_sizes_around_devices_and_blocks_have_the_numbers_of_one_device():
    """tests/sharded.py draws the sizes in a process with three devices."""
    command = [sys.executable, "-m", "tests.sharded", "3"]
    subprocess.run(command, env=commands.on_devices(3), check=True)
