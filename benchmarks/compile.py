"""Compiles our programs for accelerators that are described, or times them on those at hand.

  pip install -e '.[compile]'
  python -m benchmarks.compile --topology=v5e:2x4
  python -m benchmarks.compile --topology=cuda:8xh100 --programs=mnist,lle_200000
  python -m benchmarks.compile --topology=here     # compiles for this machine's devices, and times

The compilers of TPU and GPU work ahead of time for devices that no machine here has. --topology is
a slice of TPUs (v5e:2x4, v4:2x2x1, v6e:2x4), cuda:8xh100, or `here`. Writes compile_TOPOLOGY.json
and .md into --out, for `here` under the name of the device. docs/accelerators.md explains them.
"""

import datetime
from pathlib import Path

import jax
from absl import flags

from benchmarks import compiled, harness
from benchmarks.programs import PROGRAMS
from common import parallel
from common.errors import check_choice
from common.run import cli

TOPOLOGY = flags.DEFINE_string(
    "topology", compiled.HERE, "Devices to compile for; `here`: this machine's."
)
NAMES = flags.DEFINE_list("programs", list(PROGRAMS), "Programs to compile.")
OUT = flags.DEFINE_string("out", "benchmarks/results", "Folder of the results.")


def main(argv: list[str]) -> None:
    """Compiles the programs one after the other; each result is written at once."""
    del argv
    for name in NAMES.value:
        check_choice("program", name, PROGRAMS)
    jax.config.update("jax_enable_compilation_cache", False)  # compiling is timed
    timed = TOPOLOGY.value == compiled.HERE
    if timed:
        devices, rates = parallel.devices(), harness.rates()
        chip, device = compiled.Chip(0, rates["flops"], rates["bytes"]), harness.chip()
    else:
        devices, chip = compiled.describe(TOPOLOGY.value)
        device = devices[0].device_kind
    about = {"topology": TOPOLOGY.value, "device": device, "devices": len(devices)}
    about |= {"flops": chip.flops, "bandwidth": chip.bandwidth}
    about |= {"date": datetime.date.today().isoformat(), "versions": harness.versions()}
    name_of_files = harness.file_name(device if timed else TOPOLOGY.value)
    rows = []
    for name in NAMES.value:
        program = PROGRAMS[name]()
        if timed and program.split:
            continue  # it takes minutes of several devices
        try:
            if timed:
                arguments = parallel.replicated(jax.jit(program.arguments)())
            else:
                arguments = compiled.shapes(program, devices)
            rows.append(compiled.measure(name, program, arguments, chip, timed))
            del arguments
        except jax.errors.JaxRuntimeError as error:  # out of memory, for instance
            reason = str(error).splitlines()[0][:200]
            rows.append({"program": name, "sizes": program.sizes, "error": reason})
        table = compiled.write(about, rows, name_of_files, Path(OUT.value))
        print(" | ".join(compiled.cells(rows[-1])), flush=True)
    print(table)


if __name__ == "__main__":
    cli.run(main)
