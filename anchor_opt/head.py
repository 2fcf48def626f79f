"""The classifier on relative representations that zero-shot stitching trains once and reuses.

Published form (code of Moschella et al. 2023): LayerNorm, then twice Linear, SiLU and a norm of
each feature over the batch, then Linear and ReLU. That norm looks at the whole batch, in testing at
the whole test set: the prediction for a text depends on the other texts (transductive).
"""

import itertools
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict

from common import train
from common.workdir import Workdir

EPSILON = 1e-5  # of all norms, as in PyTorch
HEADS = ("published", "inductive")


class Settings(NamedTuple):
    """Static choices of the training; see configs/anchor_opt/stitching.py."""

    head: str  # 'published', or 'inductive': a LayerNorm in the place of each feature norm
    width: int  # of the relative vectors and of the hidden layers
    num_classes: int
    learning_rate: float
    batch_size: int


class Texts(NamedTuple):
    """What a head reads of one encoder's texts, and the class index of each."""

    train: Float[Array, "n k"]  # unit rows
    test: Float[Array, "m k"]
    train_labels: Int[np.ndarray, " n"]
    test_labels: Int[np.ndarray, " m"]


class Data(NamedTuple):
    """What the epochs read."""

    relative: Float[Array, "n k"]  # unit rows
    labels: Int[Array, " n"]
    key: jax.Array  # of the order of the batches


class State(NamedTuple):
    """Parameters of the head and state of the optimiser."""

    parameters: nnx.State
    optimiser: optax.OptState


def feature_norm(x: Float[Array, "b f"]) -> Float[Array, "b f"]:
    """Each feature with mean 0 and variance 1 over the batch, no statistics kept."""
    return (x - x.mean(axis=0)) / jnp.sqrt(x.var(axis=0) + EPSILON)


class Head(nnx.Module):
    """Unit relative vectors to scores of the classes, none below zero.

    Args:
      settings: its form and sizes.
      rngs: of the initial parameters, uniform within 1 / sqrt(inputs) as in PyTorch.
    """

    def __init__(self, settings: Settings, rngs: nnx.Rngs):
        width = settings.width
        norm = partial(nnx.LayerNorm, width, epsilon=EPSILON, rngs=rngs)
        bound = width**-0.5
        linear = partial(nnx.Linear, width, kernel_init=_within(bound), bias_init=_within(bound))
        self.input_norm = norm()
        self.first, self.second = (linear(width, rngs=rngs) for _ in range(2))
        self.out = linear(settings.num_classes, rngs=rngs)
        if settings.head == "published":
            self.first_norm = self.second_norm = feature_norm
        else:
            self.first_norm, self.second_norm = norm(), norm()

    def __call__(self, x: Float[Array, "b k"]) -> Float[Array, "b c"]:
        x = self.first_norm(jax.nn.silu(self.first(self.input_norm(x))))
        x = self.second_norm(jax.nn.silu(self.second(x)))
        return jax.nn.relu(self.out(x))


def _within(bound: float):
    return lambda key, shape, dtype: jax.random.uniform(key, shape, dtype, -bound, bound)


@partial(jax.jit, static_argnames="settings")
def init(settings: Settings, random_seed: int) -> State:
    """The state before the first epoch."""
    parameters = nnx.state(Head(settings, nnx.Rngs(jax.random.key(random_seed))))
    return State(parameters, _optimiser(settings).init(parameters))


def epoch(state: State, index, data: Data, settings: Settings) -> tuple[State, dict]:
    """One pass over the training set in random batches; what fills no batch is left out of it."""
    num_rows, size = len(data.labels), min(settings.batch_size, len(data.labels))
    order = jax.random.permutation(jax.random.fold_in(data.key, index), num_rows)
    batches = order[: num_rows // size * size].reshape(-1, size)

    def update(state, rows):
        def loss(parameters):
            scores = _scores(parameters, data.relative[rows], settings)
            losses = optax.softmax_cross_entropy_with_integer_labels(scores, data.labels[rows])
            return losses.mean()

        value, gradient = jax.value_and_grad(loss)(state.parameters)
        updates, optimiser = _optimiser(settings).update(gradient, state.optimiser)
        return State(optax.apply_updates(state.parameters, updates), optimiser), value

    state, losses = jax.lax.scan(update, state, batches)
    return state, {"loss": losses.mean()}


@partial(jax.jit, static_argnames="settings")
def predict(
    parameters: nnx.State, relative: Float[Array, "n k"], settings: Settings
) -> Int[Array, " n"]:
    """The class of largest score of each row; for the published head all rows are one batch."""
    return _scores(parameters, relative, settings).argmax(axis=1)


def _scores(parameters, relative, settings):
    return nnx.merge(_graph(settings), parameters)(relative)


@cache
def _graph(settings: Settings) -> nnx.GraphDef:
    return nnx.split(nnx.eval_shape(lambda: Head(settings, nnx.Rngs(0))))[0]


def _optimiser(settings: Settings) -> optax.GradientTransformation:
    return optax.adam(settings.learning_rate)


def train_and_test(
    texts: dict[str, Texts],
    parts: dict[str, str],
    config: ConfigDict,
    *,
    forms: tuple[str, ...],
    num_classes: int,
    random_seed: int,
    work: Workdir,
) -> list[dict]:
    """Trains every head on every space and tests it on every space of its dimension.

    Args:
      texts: name of a space -> its texts.
      parts: name of a space -> name of the part in which its heads are trained; a part that is
        there already is not trained again.
      config: config.head.
      forms: names of `HEADS`.
      num_classes: c.
      random_seed: of the initial parameters and of the batches.
      work: the run's folder.

    Returns:
      Rows with `source` (the encoder: the space tested on), `target` (the decoder: that trained
      on), `head`, `metric` (`f1`, weighted by class size, and `mae` of the class index), `value`.
    """
    from sklearn.metrics import f1_score, mean_absolute_error  # takes a second

    rows = []
    for name, (decoder, mine) in itertools.product(forms, texts.items()):
        settings = Settings(
            name, mine.train.shape[1], num_classes, config.learning_rate, config.batch_size
        )
        key = jax.random.key(random_seed)
        state = train.run(
            epoch,
            init(settings, random_seed),
            Data(mine.train, jnp.asarray(mine.train_labels), key),
            settings,
            num_steps=config.epochs,
            chunk=config.epochs,
            work=work,
            part=f"{parts[decoder]}/{name}",
        )
        for encoder, tested in texts.items():
            if tested.test.shape[1] != settings.width:
                continue
            found = np.asarray(predict(state.parameters, tested.test, settings))
            values = {
                "f1": f1_score(tested.test_labels, found, average="weighted"),
                "mae": mean_absolute_error(tested.test_labels, found),
            }
            shared = {"source": encoder, "target": decoder, "head": name}
            rows += [shared | {"metric": m, "value": float(v)} for m, v in values.items()]
    return rows
