"""One thread and one core a test process: they run side by side, most of their time compiling."""

import os

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false"

worker = os.environ.get("PYTEST_XDIST_WORKER", "gw")[2:]
if worker and hasattr(os, "sched_setaffinity"):  # elsewhere than on Linux the system decides
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(worker) % len(cores)]})
