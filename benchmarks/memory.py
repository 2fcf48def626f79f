"""Measures the peak memory of one implementation of one case, and prints it as JSON.

python -m benchmarks.memory BENCHMARK CASE IMPLEMENTATION
"""

import json
import re
import sys
from pathlib import Path

from benchmarks import harness


def process_status(field: str) -> int:
    """A field of the status of this process, in bytes.

    `getrusage` is not used, since the peak it reports includes that of the parent process.
    """
    match = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(match[1]) << 10


def main(name: str, case_name: str, implementation_name: str) -> None:
    """Runs the implementation once."""
    benchmark = harness.load(name)
    case = next(c for c in (*benchmark.cases, benchmark.quick) if c.name == case_name)
    implementation = benchmark.implementations[implementation_name]
    call = (implementation.short or implementation.prepare)(case.load())
    before = process_status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak, which loading has raised
    harness.seconds(call)
    print(json.dumps({"peak": process_status("VmHWM"), "before": before}))


if __name__ == "__main__":
    main(*sys.argv[1:])
