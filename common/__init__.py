"""The data and metrics layer that all paper packages share; it imports none of them."""

import os
import sys

# GPUs from Ampere on multiply float32 matrices in TF32 by default, which is too coarse for singular
# value decompositions, transport costs and least squares. JAX reads this when it is imported, which
# maps of NumPy are applied without.
os.environ["JAX_DEFAULT_MATMUL_PRECISION"] = "highest"
if "jax" in sys.modules:
    sys.modules["jax"].config.update("jax_default_matmul_precision", "highest")
