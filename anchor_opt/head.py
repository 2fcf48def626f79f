"""The classifier that zero-shot stitching trains on one space and tests on another.

Published form (code of Moschella et al. 2023): LayerNorm; twice Linear, SiLU and a normalisation of
each feature over the batch; Linear and ReLU. The feature normalisation computes its mean and
variance on the batch in training and on the whole test set in testing, so the prediction for a text
depends on the other texts (transductive). The inductive form has a LayerNorm in its place.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float, Int
from sklearn.metrics import f1_score, mean_absolute_error

from common.arrays import AnyArray, WholeNumber
from common.errors import check_choice
from common.parallel import all_parts, value_and_gradient
from common.run import train
from common.run.train import State
from common.run.workdir import Workdir
from common.spaces.labelled_vectors import LabelledVectors

EPSILON = 1e-5  # added to each variance, as in PyTorch
FORMS = ("published", "inductive")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """Values of config.head in configs/anchor_opt/stitching.py."""

    epochs: int
    batch_size: int
    learning_rate: float  # of Adam


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Static settings of a head: its form, its sizes and its training."""

    form: str  # one of `FORMS`
    width: int  # of the relative vectors and of the hidden layers
    num_classes: int
    training: Training


class Data(NamedTuple):
    """The training set."""

    relative: Float[Array, "n k"]  # unit rows
    labels: Int[Array, " n"]
    key: jax.Array  # determines the order of the batches


def feature_norm(x: Float[Array, "b f"]) -> Float[Array, "b f"]:
    """Each feature normalised to mean 0 and variance 1 over the batch, without running averages.

    The batch is that of all devices, of which x may be a part.
    """
    batch = all_parts(x)
    return (x - batch.mean(axis=0)) / jnp.sqrt(batch.var(axis=0) + EPSILON)


class Head(nnx.Module):
    """Maps unit relative vectors to non-negative scores of the classes.

    The initial parameters are uniform within 1 / sqrt(inputs), as in PyTorch.
    """

    def __init__(self, settings: Settings, rngs: nnx.Rngs):
        width = settings.width
        norm = partial(nnx.LayerNorm, width, epsilon=EPSILON, rngs=rngs)
        bound = width**-0.5

        def uniform(key, shape, dtype):
            return jax.random.uniform(key, shape, dtype, -bound, bound)

        linear = partial(nnx.Linear, width, kernel_init=uniform, bias_init=uniform)
        self.input_norm = norm()
        self.first, self.second = (linear(width, rngs=rngs) for _ in range(2))
        self.out = linear(settings.num_classes, rngs=rngs)
        if settings.form == "published":
            self.first_norm = self.second_norm = feature_norm
        else:
            self.first_norm, self.second_norm = norm(), norm()

    def __call__(self, x: Float[AnyArray, "b k"]) -> Float[Array, "b c"]:
        x = self.first_norm(jax.nn.silu(self.first(self.input_norm(x))))
        x = self.second_norm(jax.nn.silu(self.second(x)))
        return jax.nn.relu(self.out(x))


@partial(jax.jit, static_argnames="settings")
def init(settings: Settings, random_seed: WholeNumber) -> State:
    """The state before the first epoch."""
    parameters = nnx.state(Head(settings, nnx.Rngs(jax.random.key(random_seed))))
    return State.init(parameters, optax.adam(settings.training.learning_rate))


def with_parameters(settings: Settings, parameters: nnx.State) -> Head:
    """The head with the given settings and parameters."""
    graph = nnx.graphdef(nnx.eval_shape(lambda: Head(settings, nnx.Rngs(0))))
    return nnx.merge(graph, parameters)


def epoch(state: State, index, data: Data, settings: Settings) -> tuple[State, dict]:
    """One pass over the training set in random batches; an incomplete last batch is skipped.

    Each batch is sharded over the devices.
    """
    num_rows = len(data.labels)
    size = min(settings.training.batch_size, num_rows)
    adam = optax.adam(settings.training.learning_rate)
    order = jax.random.permutation(jax.random.fold_in(data.key, index), num_rows)
    batches = order[: num_rows // size * size].reshape(-1, size)

    def loss(parameters, batch):
        scores = with_parameters(settings, parameters)(batch[0])
        return optax.softmax_cross_entropy_with_integer_labels(scores, batch[1]).mean(), ()

    def update(state, rows):
        batch = data.relative[rows], data.labels[rows]
        (value, _), gradient = value_and_gradient(loss, state.parameters, batch)
        return state.update(gradient, adam), value

    state, losses = jax.lax.scan(update, state, batches)
    return state, {"loss": losses.mean()}


@partial(jax.jit, static_argnames="settings")
def predict(
    parameters: nnx.State, relative: Float[Array, "n k"], settings: Settings
) -> Int[Array, " n"]:
    """The class with the largest score of each row; all rows form one batch."""
    return with_parameters(settings, parameters)(relative).argmax(axis=1)


class Score(NamedTuple):
    """How well a head that was trained on the decoder's space classifies the encoder's vectors."""

    form: str  # of the head
    encoder: str  # name of the space of the test vectors
    decoder: str  # name of the space of the training vectors
    metrics: dict[str, float]  # f1, weighted by class size; mae of the class index


def train_and_test(
    spaces: Mapping[str, LabelledVectors],
    parts: Mapping[str, str],
    training: Training,
    *,
    forms: Sequence[str],
    num_classes: int,
    random_seed: int,
    work: Workdir,
) -> list[Score]:
    """Trains a head of each form on each space and tests it on every space of its dimension.

    The rows of `spaces`, by name, are unit rows; `parts` names the task under which the heads of a
    space are checkpointed. UserError: a form that is none of `FORMS`.
    """
    scores = []
    for form, (decoder, trained) in itertools.product(forms, spaces.items()):
        check_choice("head", form, FORMS)
        width = trained.train.shape[1]
        settings = Settings(form=form, width=width, num_classes=num_classes, training=training)
        rows, labels = jnp.asarray(trained.train), jnp.asarray(trained.train_labels)
        data = Data(rows, labels, jax.random.key(random_seed))
        run, epochs = train.Stages(work, f"{parts[decoder]}/{form}"), training.epochs
        begun = init(settings, random_seed)
        state = run(epoch, begun, data, settings, num_steps=epochs, chunk=epochs)
        for encoder, tested in spaces.items():
            if tested.test.shape[1] == width:
                predicted = predict(state.parameters, jnp.asarray(tested.test), settings)
                results = tested.test_labels, np.asarray(predicted)
                f1 = float(f1_score(*results, average="weighted"))
                metrics = {"f1": f1, "mae": float(mean_absolute_error(*results))}
                scores.append(Score(form, encoder, decoder, metrics))
    return scores
