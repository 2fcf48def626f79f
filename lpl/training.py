"""The maps f from source to target, and gradient descent on batches of pairs."""

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import lax
from jaxtyping import Array, Float, Int

from common.errors import check_choice, check_count
from common.parallel import value_and_gradient
from common.run import train
from common.run.train import Metrics, State
from common.run.workdir import Workdir

HIDDEN_LAYERS = {"linear": 0, "mlp": 1, "three_layers": 2}  # of the maps, by name
STEPS = 10  # of a training, at most: losses are logged after each
Parameters = Any
Apply = Callable[[Parameters, Float[Array, "... d_in"]], Any]


class Perceptron(nnx.Module):
    """Hidden layers with tanh; the paper has a single layer (3.3) or three (3.2, 3.4)."""

    def __init__(self, sizes: Sequence[int], rngs: nnx.Rngs):
        self.layers = nnx.List(nnx.Linear(*pair, rngs=rngs) for pair in itertools.pairwise(sizes))

    def __call__(self, x: Float[Array, "... d_in"]) -> Float[Array, "... d_out"]:
        *hidden, out = self.layers
        for layer in hidden:
            x = jnp.tanh(layer(x))
        return out(x)


@dataclasses.dataclass(frozen=True)
class ApplyModule:
    """Applies an NNX module with given parameters; hashable, so that it can be static under jit."""

    graph: nnx.GraphDef

    def __call__(self, parameters: Parameters, x: Float[Array, "... d"]) -> Any:
        return nnx.merge(self.graph, parameters)(x)


def linear(matrix: Float[Array, "d_in d_out"], x: Float[Array, "... d"]) -> Float[Array, "... e"]:
    """The linear map f(x) = x M."""
    return x @ matrix


def init_map(name: str, d_in: int, d_out: int, hidden: int, key: Array) -> tuple[Parameters, Apply]:
    """Initial parameters of a map from d_in to d_out dimensions, and the function that applies it.

    'linear' is a matrix that is initialised with orthonormal rows or columns; the others are a
    `Perceptron` with the hidden layers of `HIDDEN_LAYERS`, this number of units in each and the
    initialisation of NNX.

    Raises:
      UserError: an unknown name.
    """
    check_choice("map", name, HIDDEN_LAYERS)
    if name == "linear":
        return jax.nn.initializers.orthogonal()(key, (d_in, d_out)), linear
    sizes = d_in, *[hidden] * HIDDEN_LAYERS[name], d_out
    graph, parameters = nnx.split(Perceptron(sizes, nnx.Rngs(key)))
    return parameters, ApplyModule(graph)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """Static settings of a training.

    A subclass defines `objective` and `optimiser`.

    Attributes:
      learning_rate: at the start; it decays to zero as a cosine.
      batch: pairs of an update, drawn with replacement.
      updates: number of updates.
      apply: applies the map that is trained.
    """

    learning_rate: float
    batch: int
    updates: int
    apply: Apply = linear

    @property
    def steps(self) -> int:
        """Equal parts of the updates, of each of which `step` makes one."""
        return math.gcd(self.updates, STEPS)

    def objective(self, parameters: Parameters, data: Any, rows: Int[Array, " b"]) -> Any:
        """The loss of the training pairs `rows`, and its terms by name."""
        raise NotImplementedError

    def optimiser(self, schedule: optax.Schedule) -> optax.GradientTransformation:
        """The optimiser, for a schedule of the learning rate."""
        raise NotImplementedError


def init_state(parameters: Parameters, settings: Training) -> State:
    """The state before the first update."""
    return State.init(parameters, _optimiser(settings))


def step(
    state: State, index: Int[Array, ""], data: Any, settings: Training
) -> tuple[State, Metrics]:
    """One of `settings.steps` equal parts of the updates, and the mean of their losses.

    Batches are drawn from the first `data.num_pairs` pairs; they depend on `data.key` and the
    number of the update alone, and are sharded over the devices. The objective, a mean over its
    rows, may read whatever else `data` has.
    """

    def objective(parameters, rows, data):
        return settings.objective(parameters, data, rows)

    def update(state, number):
        key = jax.random.fold_in(data.key, number)
        rows = jax.random.randint(key, (settings.batch,), 0, data.num_pairs)
        (_, terms), gradient = value_and_gradient(objective, state.parameters, rows, data)
        return state.update(gradient, _optimiser(settings)), terms

    count = settings.updates // settings.steps
    state, terms = lax.scan(update, state, index * count + jnp.arange(count))
    return state, {name: values.mean() for name, values in terms.items()}


def _optimiser(settings: Training) -> optax.GradientTransformation:
    check_count("updates", settings.updates)
    return settings.optimiser(optax.cosine_decay_schedule(settings.learning_rate, settings.updates))


def run(
    step: train.Step,
    state: State,
    data: Any,
    settings: Training,
    *,
    work: Workdir,
    part: str,
    runs: int = 1,
) -> State:
    """Makes all updates by `common.run.train.run`, and logs the training pairs per second.

    `step` may be the one above, or train several runs at once; `state` is donated.

    Raises:
      UserError: no update, or a training that diverged.
    """
    began, steps = time.perf_counter(), settings.steps
    chunk = -(-steps // 2)
    state = train.run(
        step, state, data, settings, num_steps=steps, chunk=chunk, work=work, part=part
    )
    jax.block_until_ready(state)
    rate = settings.updates * settings.batch * runs / (time.perf_counter() - began)
    work.metrics.add(f"{part}/throughput", {0: {"pairs_per_second": rate}})
    return state
