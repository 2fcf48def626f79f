"""The data and metrics layer that all paper packages share; it imports none of them."""

import jax

# GPUs from Ampere on multiply float32 in TF32 by default: too coarse for alignment mathematics.
jax.config.update("jax_default_matmul_precision", "highest")
