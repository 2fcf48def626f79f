"""The table of compiled programs: what it counts, and programs compiled for described devices."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from benchmarks import compiled, hlo, programs
from common import retrieval
from common.errors import UserError

ROOT = Path(__file__).parents[1]
ALL_PAIRS = {  # numbers of rows that are compared with each other
    "lle_200000": 20_000 * 200_000,
    "top_k_1000000": 16_384 * 1_000_000,
    "match_20000": 20_000**2,
}


def test_work_in_a_loop_counts_as_often_as_the_loop_runs():
    def looped(x):
        return lax.scan(lambda c, _: (jnp.sin(c @ c), None), x, length=7)[0]

    n = 64
    traced = hlo.traced(looped, jnp.ones((n, n)))
    assert hlo.product_flops(traced.jaxpr) == 7 * 2 * n**3
    cost = hlo.cost(traced.lower().compile().as_text())
    # A product reads a matrix and writes one, the sine likewise; copies may be added.
    assert 7 * 4 * 4 * n**2 <= cost.bytes <= 7 * 8 * 4 * n**2
    assert not cost.collectives and not cost.cycles


def test_loops_of_unknown_length_are_told_and_products_of_lower_precision_count_less():
    x = jnp.ones((8, 8))
    loop = hlo.traced(lambda x, n: lax.fori_loop(0, n, lambda _, x: x @ x, x), x, 3)
    assert hlo.product_flops(loop.jaxpr, trips=5) == 5 * 2 * 8**3
    two = hlo.traced(lambda x: jnp.matmul(x, x, precision="high") @ x, x)
    assert hlo.product_flops(two.jaxpr) == 2 * 2 * 8**3
    assert hlo.product_flops(two.jaxpr, high=0.5) == 1.5 * 2 * 8**3


def test_padding_of_tiles_and_memory_on_the_chip():
    shape = "(f32[20,300]{1,0:T(8,128)}, bf16[7]{0:T(1024)}, f32[8,128]{1,0:T(8,128)S(1)})"
    sizes = list(hlo.sizes(shape))
    assert sizes == [(24_000, 24 * 384 * 4, False), (14, 2_048, False), (4_096, 4_096, True)]


def test_loops_branches_and_collectives_of_a_text():
    text = """
body (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %r = f32[8]{0} all-reduce(%p), to_apply=%add
}
condition (p: f32[8]) -> pred[] {
  ROOT %c = pred[] constant(true)
}
first (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %n = f32[8]{0} negate(%p)
}
second (p: f32[8]) -> f32[8] {
  ROOT %p = f32[8]{0} parameter(0)
}
ENTRY main (a: f32[8]) -> f32[64] {
  %a = f32[8]{0} parameter(0)
  %w = f32[8]{0} while(%a), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  %b = f32[8]{0} conditional(%i, %w, %w), branch_computations={%first, %second}
  %t = f32[8]{0} conditional(%i, %b, %b), true_computation=%first, false_computation=%second
  %s = (f32[8]{0}, f32[8]{0}) collective-permute-start(%t)
  ROOT %d = f32[8]{0} collective-permute-done(%s)
}
"""  # noqa: E501
    cost = hlo.cost(text)
    assert cost.collectives == {"all-reduce": 5 * 32, "collective-permute": 32}
    assert cost.counts == {"all-reduce": 5, "collective-permute": 1}
    # Reading and writing; of two branches one runs; and of small arrays a start reads nothing.
    assert cost.bytes == 5 * 2 * 32 + 2 * 2 * 32 / 2


def test_small_programs_are_timed_on_this_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "SECONDS", 0.0)
    program = programs.neighbours(retrieval.top_k, 100, 500)
    chip = compiled.Chip(0, 1e12, 1e10)
    row = compiled.measure("top_k", program, jax.jit(program.arguments)(), chip, timed=True)
    assert row["seconds"] > 0 and row["bytes"] > 0 and row["compile_seconds"] > 0
    assert not row["collectives"]
    about = {"topology": "here", "device": "a chip", "devices": 1, "date": ""}
    about |= {"flops": chip.flops, "bandwidth": chip.bandwidth}
    table = compiled.write(about, [row], "chip", tmp_path)
    assert "top_k" in table and table == (tmp_path / "compile_chip.md").read_text()
    assert json.loads((tmp_path / "compile_chip.json").read_text())["rows"] == [row]


@pytest.mark.parametrize("name", {name.rstrip("_0"): name for name in programs.PROGRAMS}.values())
def test_every_program_is_traced_from_shapes_alone(name):
    """With the values of the configs, as users time them."""
    program = programs.PROGRAMS[name]()
    traced = hlo.traced(program.function, *jax.eval_shape(program.arguments))
    assert hlo.product_flops(traced.jaxpr, program.trips) > 0


def test_a_topology_that_is_unknown_or_not_installed():
    for topology in ("v5e", "cuda:8xa100", "moon:1x1"):
        with pytest.raises(UserError, match="There is no topology"):
            compiled.describe(topology)
    if find_spec("libtpu") is None:
        with pytest.raises(UserError, match=r"pip install -e '.\[compile\]'"):
            compiled.describe("v5e:2x4")


@pytest.mark.skipif(find_spec("libtpu") is None, reason="needs the extra 'compile'")
def test_programs_compiled_for_eight_tpus(tmp_path):
    """Those that take seconds: their memory has no room for all pairs, and devices communicate."""
    names = *ALL_PAIRS, "graphs", "lpl"
    command = [sys.executable, "-m", "benchmarks.compile", "--topology=v5e:2x4"]
    command += [f"--programs={','.join(names)}", f"--out={tmp_path}"]
    subprocess.run(command, check=True, cwd=ROOT, env=os.environ | {"JAX_PLATFORMS": "cpu"})
    written = json.loads((tmp_path / "compile_v5e-2x4.json").read_text())
    assert written["devices"] == 8
    for row in written["rows"]:
        assert row["seconds"] is None
        assert row["temporary"] < 4 * ALL_PAIRS.get(row["program"], np.inf) / 8 / 2, row["program"]
        if row["program"] in ("match_20000", "graphs", "lpl"):
            assert row["collectives"]["all-reduce"] > 0, row["program"]
