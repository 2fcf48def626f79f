"""Programs are counted once each, and those that the cache has apart from the others."""

import jax
import numpy as np

from common.run import compilations


def test_a_program_counts_when_it_is_first_needed_and_again_when_it_is_read_from_the_cache(
    tmp_path,
):
    x, before = np.ones(7, np.float32), jax.config.jax_compilation_cache_dir
    function = jax.jit(lambda x: 3 * x + 2)
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    jax.experimental.compilation_cache.compilation_cache.reset_cache()
    try:
        with compilations.counted() as first:
            function(x), function(x)
        jax.clear_caches()
        with compilations.counted() as again:
            function(x)
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
        jax.experimental.compilation_cache.compilation_cache.reset_cache()
    function(np.ones(8, np.float32))  # not counted any more
    assert (first.programs, first.from_cache) == (1, 0) and first.seconds > 0
    assert (again.programs, again.from_cache) == (1, 1)
    assert str(again).startswith("Programs of JAX: 1, of which 1 were read from the cache of")
