"""The data and metrics layer that all paper packages share; it imports none of them."""

import jax

# GPUs from Ampere on multiply float32 matrices in TF32 by default, which is too coarse for singular
# value decompositions, transport costs and least squares.
jax.config.update("jax_default_matmul_precision", "highest")
