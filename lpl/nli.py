"""Alignment as a regulariser for natural language inference (section 3.4, Figure 2, equation 8).

A frozen encoder gives vectors of a premise p and a hypothesis h, and f maps p towards h. A
perceptron of two layers reads [f(p); p; h] and predicts entailment, neutral or contradiction. All
random runs are trained at once, by `vmap`.
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, ArrayLike, Float, Int
from scipy.spatial.distance import cdist

from common.run.train import Metrics, State
from lpl import loss, training

LABELS = ("entailment", "neutral", "contradiction")


class Classifier(nnx.Module):
    """Two layers; the output of the first one is the representation of a pair (Table 3)."""

    def __init__(self, d_in: int, hidden: int, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(d_in, hidden, rngs=rngs)
        self.out = nnx.Linear(hidden, 3, rngs=rngs)

    def __call__(
        self, x: Float[Array, "... d_in"]
    ) -> tuple[Float[Array, "... 3"], Float[Array, "... hidden"]]:
        hidden = jax.nn.relu(self.hidden(x))
        return self.out(hidden), hidden


class Method(NamedTuple):
    """Which inputs the classifier has, and whether L_lpl is added to L_mse."""

    map: bool = True  # whether the classifier reads f(p)
    premise: bool = True  # whether it reads p
    lpl: bool = False


METHODS = {
    "hypothesis_only": Method(map=False, premise=False),  # how far h alone predicts the label
    "baseline": Method(map=False),
    "map_only": Method(),  # f trained by cross-entropy: the larger network without the new losses
    "mse": Method(),
    "mse_lpl": Method(lpl=True),
}


class EncodedPairs(NamedTuple):
    """Sentence pairs as rows of a matrix of vectors, and the index of each label in `LABELS`."""

    premises: Int[ArrayLike, "*r n"]
    hypotheses: Int[ArrayLike, "*r n"]
    labels: Int[ArrayLike, "*r n"]


class Data(NamedTuple):
    """What a training reads; r random runs, padded so that numbers of pairs share a compilation.

    Attributes:
      vectors: of all texts.
      neighbours: neighbours of each text that is a training premise, arbitrary rows for other
        texts; k = 0 without LPL.
      weights: weight of each neighbour, from the first phase.
      inputs: factors of f(p) and of p at the input of the classifier, 0 if the method does not
        read them.
      num_pairs: number of training pairs before the padding.
      pairs: the training pairs of each run.
      key: random key of each run's batches.
    """

    vectors: Float[Array, "m d"]
    neighbours: Int[Array, "m k"]
    weights: Float[Array, "m k"]
    inputs: Float[Array, " 2"]
    num_pairs: Int[Array, ""]
    pairs: EncodedPairs
    key: Array


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(training.Training):
    """Static settings of a training; configs/lpl/nli.py explains the values.

    Attributes:
      classify: applies the classifier.
      delta: weight of the alignment losses for each label, in the order of `LABELS`.
      negative_loss_floor: see `weigh`.
      gamma: weight of the alignment losses.
    """

    classify: training.Apply
    delta: tuple[float, float, float]
    negative_loss_floor: float
    gamma: float = 0.0

    def optimiser(self, schedule: optax.Schedule) -> optax.GradientTransformation:
        """Adam."""
        return optax.adam(schedule)

    def forward(
        self, parameters: dict, data: Data, pairs: EncodedPairs
    ) -> tuple[Float[Array, "n d"], Float[Array, "n 3"], Float[Array, "n hidden"]]:
        """f(p), the logits and the representation of each pair, by the parameters of one run."""
        p, h = data.vectors[pairs.premises], data.vectors[pairs.hypotheses]
        image = self.apply(parameters["map"], p)
        x = jnp.concatenate([image * data.inputs[0], p * data.inputs[1], h], axis=1)
        return image, *self.classify(parameters["classifier"], x)

    def objective(
        self, parameters: dict, data: Data, rows: Int[Array, " b"]
    ) -> tuple[Float[Array, ""], Metrics]:
        """Cross-entropy + gamma delta_y (L_mse + L_lpl) of one run's batch (equation 8)."""
        pairs = jax.tree.map(lambda column: column[rows], data.pairs)
        image, logits, _ = self.forward(parameters, data, pairs)
        entropy = optax.softmax_cross_entropy_with_integer_labels(logits, pairs.labels).mean()
        hypotheses, delta = data.vectors[pairs.hypotheses], jnp.array(self.delta)[pairs.labels]
        terms = {"mse": loss.mse(image, hypotheses)}
        if data.neighbours.shape[1]:
            near = self.apply(parameters["map"], data.vectors[data.neighbours[pairs.premises]])
            terms["lpl"] = loss.lpl(near, data.weights[pairs.premises], hypotheses)
        floor = self.negative_loss_floor
        alignment = sum(weigh(term, delta, floor).mean() for term in terms.values())
        means = {name: term.mean() for name, term in terms.items()}
        return entropy + self.gamma * alignment, {"cross_entropy": entropy} | means


def restrict(data: Data, method: Method, num_pairs: int) -> Data:
    """The data that a method reads with this number of training pairs."""
    inputs = jnp.array([method.map, method.premise], jnp.float32)
    k = data.neighbours.shape[1] if method.lpl else 0
    kept = {"neighbours": data.neighbours[:, :k], "weights": data.weights[:, :k]}
    return data._replace(inputs=inputs, num_pairs=jnp.array(num_pairs), **kept)


def init(
    name: str, d: int, map_hidden: int, classifier_hidden: int, keys: Array
) -> tuple[dict[str, training.Parameters], training.Apply, training.Apply]:
    """Initial parameters of all runs, and the functions that apply f and the classifier.

    The map of this name (see `training.init_map`, which raises UserError) and the classifier have
    `map_hidden` and `classifier_hidden` units. The parameters do not depend on the method.
    """
    runs = []
    for key in keys:
        first, second = jax.random.split(key)
        mapping, apply = training.init_map(name, d, d, map_hidden, first)
        graph, classifier = nnx.split(Classifier(3 * d, classifier_hidden, nnx.Rngs(second)))
        runs.append({"map": mapping, "classifier": classifier})
    parameters = jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)
    return parameters, apply, training.ApplyModule(graph)


def init_state(parameters: dict[str, training.Parameters], settings: Settings) -> State:
    """The state of all runs before the first update."""
    return jax.vmap(partial(training.init_state, settings=settings))(parameters)


def step(
    state: State, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[State, Metrics]:
    """`training.step` for all runs at once; all methods see the same batches."""

    def run(state, pairs, key):
        return training.step(state, index, data._replace(pairs=pairs, key=key), settings)

    state, terms = jax.vmap(run)(state, data.pairs, data.key)
    return state, {name: values.mean() for name, values in terms.items()}


def weigh(term: Float[Array, " b"], delta: Float[Array, " b"], floor: float) -> Float[Array, " b"]:
    """The loss delta L of each pair; with a negative delta at least `floor`.

    The paper says that "in practice, the negative loss has a threshold", without its value. Here it
    applies to L_mse and L_lpl of each pair separately, so that it means the same with and without
    LPL. A pair whose loss is at the floor has no gradient.
    """
    return jnp.maximum(delta * term, jnp.where(delta < 0, floor, -jnp.inf))


@partial(jax.jit, static_argnames="settings")
def predict(
    parameters: dict, data: Data, pairs: EncodedPairs, settings: Settings
) -> tuple[Int[Array, "r t"], Float[Array, "r t hidden"]]:
    """The labels that each run predicts for t pairs, and their representations."""
    _, logits, hidden = jax.vmap(lambda run: settings.forward(run, data, pairs))(parameters)
    return logits.argmax(axis=2), hidden


def premise_neighbours(
    vectors: Float[Array, "m d"], premises: Int[Array, " c"], k: int, regularisation: float
) -> tuple[Int[Array, "m k"], Float[Array, "m k"]]:
    """First phase (equation 6): the k neighbours of premises among premises, and their weights.

    `premises` are distinct rows of the vectors of all texts. Of texts that are not premises the
    result has zeros.
    """
    space, rows = vectors[premises], jnp.arange(len(premises))
    near = loss.neighbours(space, rows, k)
    weights = loss.lle_weights(space, rows, near, regularisation)
    index = jnp.zeros((len(vectors), k), jnp.int32).at[premises].set(premises[near])
    return index, jnp.zeros((len(vectors), k)).at[premises].set(weights)


def nearest_pairs(
    hidden: Float[ArrayLike, "t h"], pairs: EncodedPairs, num_neighbours: int
) -> Int[np.ndarray, "t k"]:
    """The pairs with the nearest representations, of those that share no text with a pair.

    A premise that stands in three pairs with three labels has these as its nearest pairs, whatever
    the classifier has learned.
    """
    same_premise, same_hypothesis = (
        np.equal.outer(np.asarray(texts), np.asarray(texts))
        for texts in (pairs.premises, pairs.hypotheses)
    )
    distances = cdist(hidden, hidden, "sqeuclidean")
    distances[same_premise | same_hypothesis] = np.inf
    return np.argsort(distances, axis=1, kind="stable")[:, :num_neighbours]


def neighbour_agreement(
    nearest: Int[np.ndarray, "t k"], predicted: Int[ArrayLike, " t"], labels: Int[ArrayLike, " t"]
) -> float:
    """The fraction of a pair's nearest pairs that are predicted to have its label (Table 3)."""
    return float(np.mean(np.asarray(predicted)[nearest] == np.asarray(labels)[:, None]))
