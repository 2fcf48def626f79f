"""The cache of compiled programs, how many a run needs, and how long compiling them takes."""

import contextlib
import dataclasses
import os
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
from jax import monitoring

from common.data.packages import cache_dir

COMPILED = "/jax/core/compile/backend_compile_duration"  # read from the cache, or compiled
FROM_CACHE = "/jax/compilation_cache/cache_hits"
PROGRAM_DAYS, PROGRAM_BYTES = 60, 4 << 30  # of compiled programs in the cache folder
# With the variants an H100 was idle for minutes before a first random run (docs/accelerators.md).
GPU_FLAGS = "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false"


@dataclasses.dataclass
class Compilations:
    """Programs that were compiled or read from the cache of compiled programs, and the seconds."""

    programs: int = 0
    from_cache: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"Programs of JAX: {self.programs:,}, of which {self.from_cache:,} were read from the "
            f"cache of compiled programs; compiling and reading took {self.seconds:.1f} s."
        )


def counted() -> Compilations:
    """The programs of this process, which are counted from now on."""
    count = Compilations()

    def compiled(event: str, duration_secs: float, **_: Any) -> None:
        if event == COMPILED:
            count.programs += 1
            count.seconds += duration_secs

    def found(event: str, **_: Any) -> None:
        count.from_cache += event == FROM_CACHE

    monitoring.register_event_duration_secs_listener(compiled)
    monitoring.register_event_listener(found)
    return count


def keep_programs() -> None:
    """Stores compiled programs in the cache folder; the variables of JAX come first."""
    folder = cache_dir() / "programs"
    defaults = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0,  # short programs too
    }
    for name, value in defaults.items():
        if not os.environ.get(name.upper()):
            jax.config.update(name, value)
    with contextlib.suppress(OSError):  # none yet, deleted by another run, or not ours to delete
        _forget_old_programs(folder)


def compile_for_gpu_at_once() -> None:
    """Lets XLA compile for a GPU without timing variants on it; XLA_FLAGS come first."""
    if find_spec("jax_plugins") and any(find_spec(f"jax_plugins.xla_cuda{n}") for n in (12, 13)):
        os.environ.setdefault("XLA_FLAGS", GPU_FLAGS)


def _forget_old_programs(folder: Path) -> None:
    """Deletes programs unused for PROGRAM_DAYS, and the longest unused beyond PROGRAM_BYTES."""
    stored = [(entry.stat(), entry.path) for entry in os.scandir(folder)]
    used = [(max(file.st_atime, file.st_mtime), file.st_size, path) for file, path in stored]
    total = 0
    for last, size, path in sorted(used, reverse=True):
        total += size
        if total > PROGRAM_BYTES or time.time() - last > PROGRAM_DAYS * 86_400:
            os.unlink(path)
