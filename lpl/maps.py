"""The maps f: a plain matrix, or a small perceptron."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from common import cli

Parameters = Any
Apply = Callable[[Parameters, Float[Array, "... d_in"]], Float[Array, "... d_out"]]


class Perceptron(nnx.Module):
    """One hidden layer with tanh; the paper has a single layer (3.3) or three (3.2, 3.4)."""

    def __init__(self, d_in: int, hidden: int, d_out: int, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(d_in, hidden, rngs=rngs)
        self.out = nnx.Linear(hidden, d_out, rngs=rngs)

    def __call__(self, x: Float[Array, "... d_in"]) -> Float[Array, "... d_out"]:
        return self.out(jnp.tanh(self.hidden(x)))


class Module:
    """Applies an NNX module of given parameters; hashable, as compiled steps ask."""

    def __init__(self, graph: nnx.GraphDef):
        self.graph = graph

    def __call__(self, parameters: Parameters, x: Float[Array, "... d"]) -> Float[Array, "... e"]:
        return nnx.merge(self.graph, parameters)(x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Module) and self.graph == other.graph

    def __hash__(self) -> int:
        return hash(self.graph)


def linear(matrix: Float[Array, "d_in d_out"], x: Float[Array, "... d"]) -> Float[Array, "... e"]:
    """The map of a plain matrix, which acts on the right."""
    return x @ matrix


def init(name: str, d_in: int, d_out: int, hidden: int, key: Array) -> tuple[Parameters, Apply]:
    """Parameters and the function that applies them.

    Args:
      name: 'linear' starts from a random matrix with orthonormal rows or columns; 'mlp' as NNX has
        it.
      d_in: dimension of the source space.
      d_out: of the target space.
      hidden: units of the hidden layer of 'mlp'.
      key: of the start.

    Raises:
      UserError: an unknown name.
    """
    return cli.choose(MAPS, name, "map")(d_in, d_out, hidden, key)


def _linear(d_in, d_out, hidden, key):
    del hidden
    return jax.nn.initializers.orthogonal()(key, (d_in, d_out)), linear


def _perceptron(d_in, d_out, hidden, key):
    graph, parameters = nnx.split(Perceptron(d_in, hidden, d_out, nnx.Rngs(key)))
    return parameters, Module(graph)


MAPS = {"linear": _linear, "mlp": _perceptron}
