"""How many programs a run needs, and how long JAX takes to compile them."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

from jax import monitoring

COMPILED = "/jax/core/compile/backend_compile_duration"  # read from the cache, or compiled
FROM_CACHE = "/jax/compilation_cache/cache_hits"


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


@contextlib.contextmanager
def counted() -> Iterator[Compilations]:
    """Counts the programs of this process while the context lasts."""
    count = Compilations()

    def compiled(event: str, duration_secs: float, **_: Any) -> None:
        if event == COMPILED:
            count.programs += 1
            count.seconds += duration_secs

    def found(event: str, **_: Any) -> None:
        count.from_cache += event == FROM_CACHE

    monitoring.register_event_duration_secs_listener(compiled)
    monitoring.register_event_listener(found)
    try:
        yield count
    finally:
        monitoring.unregister_event_duration_listener(compiled)
        monitoring.unregister_event_listener(found)
