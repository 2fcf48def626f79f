"""The data and metrics layer that all paper packages share; it imports none of them."""

import os
import sys

# GPUs from Ampere on multiply float32 in TF32 by default: too coarse for alignment mathematics.
if "jax" in sys.modules:
    sys.modules["jax"].config.update("jax_default_matmul_precision", "highest")
else:  # by its environment: a command line that says what is wrong with a flag need not wait for it
    os.environ["JAX_DEFAULT_MATMUL_PRECISION"] = "highest"
