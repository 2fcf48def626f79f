"""Peak memory of one side of one case, alone in this process: a line of JSON.

python -m benchmarks.memory SUBJECT CASE SIDE
"""

import json
import re
import sys
from pathlib import Path

from benchmarks import harness


def status(field: str) -> int:
    """A field of this process's status in bytes.

    Not `getrusage`: a new process starts with its parent's peak there.
    """
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) << 10


def main(name: str, case_name: str, side_name: str) -> None:
    """Runs the side once."""
    subject = harness.load(name)
    case = next(c for c in (*subject.cases, subject.quick) if c.name == case_name)
    side = subject.sides[side_name]
    call = (side.brief or side.prepare)(case.load())
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak of loading
    harness.seconds(call)
    print(json.dumps({"peak": status("VmHWM"), "before": before}))


if __name__ == "__main__":
    main(*sys.argv[1:])
