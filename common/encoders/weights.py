"""Networks in Flax whose parameters are those of a checkpoint of PyTorch."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

# Names of parameters in Flax -> in PyTorch, where they differ.
LEAVES = dict.fromkeys(("kernel", "embedding", "scale"), "weight")
LEAVES |= {"mean": "running_mean", "var": "running_var"}
Network = TypeVar("Network", bound=nnx.Module)


def with_weights(
    build: Callable[[], Network],
    weights: dict[str, np.ndarray],
    names: Mapping[str, str] = LEAVES,
    prefix: str = "",
) -> Network:
    """Builds a network and sets its parameters, which are taken out of `weights`.

    The name of one there is `prefix` and its path of attributes, whose parts `names` translates.
    Kernels are [out, in, h, w] there and [h, w, in, out] here, matrices [out, in] and [in, out].
    ValueError: a parameter is absent, not finite or of another shape.
    """
    graph, state = nnx.split(nnx.eval_shape(build))

    def value(path, leaf):
        keys = [str(k.key) for k in path if hasattr(k, "key")]  # without nnx's own `.value`
        name = prefix + ".".join(names.get(key, key) for key in keys)
        array = weights.pop(name, np.empty(0))  # which is freed once it is on the device
        if keys[-1] == "kernel":
            array = array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T
        if array.shape != leaf.shape or not np.isfinite(array).all():
            raise ValueError(f"{name} is not a finite array that becomes {leaf.shape}")
        return jnp.asarray(array, jnp.float32)

    return nnx.merge(graph, jax.tree_util.tree_map_with_path(value, state))
