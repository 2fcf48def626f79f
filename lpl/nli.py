"""Alignment as a regulariser for natural language inference (section 3.4, Figure 2, equation 8).

A frozen encoder gives a premise p and a hypothesis h; f maps p towards h; a perceptron of two
layers reads [f(p); p; h] and tells entailment, neutral and contradiction apart.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import lax
from jaxtyping import Array, Float, Int

from lpl import loss, maps

ADAM = optax.scale_by_adam()


class Classifier(nnx.Module):
    """Two layers; the first one's output is the representation of a pair (Table 3)."""

    def __init__(self, d_in: int, hidden: int, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(d_in, hidden, rngs=rngs)
        self.out = nnx.Linear(hidden, 3, rngs=rngs)

    def __call__(
        self, x: Float[Array, "... d_in"]
    ) -> tuple[Float[Array, "... 3"], Float[Array, "... hidden"]]:
        hidden = jax.nn.relu(self.hidden(x))
        return self.out(hidden), hidden


class Method(NamedTuple):
    """What of the network and of the loss a method has; gamma is a value of its config.

    Attributes:
      map: whether the classifier sees f(p); zeros stand there otherwise.
      premise: whether it sees p.
      lpl: whether L_lpl is a term of the alignment beside L_mse.
    """

    map: bool = True
    premise: bool = True
    lpl: bool = False


METHODS = {
    "hypothesis_only": Method(map=False, premise=False),  # what a label can be told from alone
    "baseline": Method(map=False),
    "map_only": Method(),  # f trained by cross-entropy: the larger network without the new loss
    "mse": Method(),
    "mse_lpl": Method(lpl=True),
}


class Settings(NamedTuple):
    """What a step is compiled for; the values are explained in configs/lpl/nli.py."""

    apply: maps.Apply
    classify: maps.Apply
    delta: tuple[float, float, float]
    floor: float
    batch: int
    updates: int
    updates_per_step: int


class Data(NamedTuple):
    """Training pairs of r runs, padded to one shape so that sizes share a compilation.

    Attributes:
      table: vectors of all texts.
      neighbours: of each text that is a training premise; any row for the others; k = 0 without
        LPL.
      weights: of each neighbour, from the first phase.
      seen: factors of f(p) and p at the classifier's input, 0 or 1.
      gamma: weight of the alignment's losses, 0 without.
      learning_rate: of Adam at the start; it decays to zero as a cosine.
      count: of pairs that are no padding.
      premises: rows of the table.
      hypotheses: likewise.
      labels: 0 entailment, 1 neutral, 2 contradiction.
      key: of each run, from which each update's draw is folded.
    """

    table: Float[Array, "m d"]
    neighbours: Int[Array, "m k"]
    weights: Float[Array, "m k"]
    seen: Float[Array, " 2"]
    gamma: Float[Array, ""]
    learning_rate: Float[Array, ""]
    count: Int[Array, ""]
    premises: Int[Array, "r n"]
    hypotheses: Int[Array, "r n"]
    labels: Int[Array, "r n"]
    key: Array


class State(NamedTuple):
    """Of the loop; leaves have r leading rows."""

    parameters: dict[str, maps.Parameters]
    moments: optax.OptState


def init(
    name: str, d: int, map_hidden: int, hidden: int, keys: Array
) -> tuple[State, maps.Apply, maps.Apply]:
    """The state before the first update, and the functions that apply f and the classifier.

    Args:
      name: of the map, see `maps.init`.
      d: dimension of the vectors.
      map_hidden: units of the hidden layer of f where it has one.
      hidden: units of the classifier's.
      keys: of the runs; equal keys start equally, whatever the method.

    Raises:
      UserError: an unknown map.
    """
    starts = []
    for key in keys:
        first, second = jax.random.split(key)
        mapping, apply = maps.init(name, d, d, map_hidden, first)
        graph, classifier = nnx.split(Classifier(3 * d, hidden, nnx.Rngs(second)))
        starts.append({"map": mapping, "classifier": classifier})
    parameters = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)
    moments = jax.vmap(ADAM.init)(parameters)
    return State(parameters, moments), apply, maps.Module(graph)


def step(
    state: State, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[State, dict[str, Float[Array, ""]]]:
    """`updates_per_step` updates of every run, on batches drawn with replacement; mean losses.

    The draws depend on the run and the update alone: methods see the same batches.
    """
    numbers = index * settings.updates_per_step + jnp.arange(settings.updates_per_step)
    decay = optax.cosine_decay_schedule(1.0, settings.updates)

    def run(state, data):
        def update(state, number):
            draw = jax.random.fold_in(data.key, number)
            rows = jax.random.randint(draw, (settings.batch,), 0, data.count)
            (_, terms), gradient = jax.value_and_grad(objective, has_aux=True)(
                state.parameters, data, rows, settings
            )
            change, moments = ADAM.update(gradient, state.moments)
            rate = -data.learning_rate * decay(number)
            change = jax.tree.map(lambda x: rate * x, change)
            return State(optax.apply_updates(state.parameters, change), moments), terms

        return lax.scan(update, state, numbers)

    state, terms = jax.vmap(run, (0, Data(*7 * (None,), 0, 0, 0, 0)))(state, data)
    return state, {name: values.mean() for name, values in terms.items()}


def objective(
    parameters: dict, data: Data, rows: Int[Array, " b"], settings: Settings
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """Cross-entropy + gamma delta_y (L_mse + L_lpl) of one run's batch (eq. 8), and its terms."""

    def mapped(x):
        return settings.apply(parameters["map"], x)

    chosen, labels = data.premises[rows], data.labels[rows]
    premises, hypotheses = data.table[chosen], data.table[data.hypotheses[rows]]
    image = mapped(premises)
    x = features(image, premises, hypotheses, data.seen)
    logits, _ = settings.classify(parameters["classifier"], x)
    entropy = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    delta = jnp.array(settings.delta)[labels]
    terms = {"mse": loss.mse(image, hypotheses)}
    if data.neighbours.shape[1]:
        near = mapped(data.table[data.neighbours[chosen]])
        terms["lpl"] = loss.lpl(near, data.weights[chosen], hypotheses)
    alignment = sum(weigh(term, delta, settings.floor).mean() for term in terms.values())
    means = {name: term.mean() for name, term in terms.items()}
    return entropy + data.gamma * alignment, {"cross_entropy": entropy} | means


def weigh(term: Float[Array, " b"], delta: Float[Array, " b"], floor: float) -> Float[Array, " b"]:
    """Gives delta L of each pair; a negative delta pulls apart no further than to `floor`.

    The paper: 'in practice, the negative loss has a threshold', without its value. Here L_mse and
    L_lpl of a pair are held each by itself, so that the floor means the same with and without LPL;
    a pair on the floor has no gradient.
    """
    return jnp.maximum(delta * term, jnp.where(delta < 0, floor, -jnp.inf))


def features(
    image: Float[Array, "b d"],
    premises: Float[Array, "b d"],
    hypotheses: Float[Array, "b d"],
    seen: Float[Array, " 2"],
) -> Float[Array, "b 3*d"]:
    """[f(p); p; h], the classifier's input, with zeros for what a method does not see."""
    return jnp.concatenate([image * seen[0], premises * seen[1], hypotheses], axis=1)


@partial(jax.jit, static_argnames="settings")
def predict(
    parameters: dict,
    table: Float[Array, "m d"],
    seen: Float[Array, " 2"],
    premises: Int[Array, " t"],
    hypotheses: Int[Array, " t"],
    settings: Settings,
) -> tuple[Int[Array, "r t"], Float[Array, "r t hidden"]]:
    """Each run's labels and representations of pairs given as rows of the table; see `Data`."""

    def run(parameters):
        p, h = table[premises], table[hypotheses]
        x = features(settings.apply(parameters["map"], p), p, h, seen)
        logits, hidden = settings.classify(parameters["classifier"], x)
        return logits.argmax(axis=1), hidden

    return jax.vmap(run)(parameters)


def neighbourhoods(
    table: Float[Array, "m d"], premises: Int[Array, " c"], k: int, regularisation: float
) -> tuple[Int[Array, "m k"], Float[Array, "m k"]]:
    """First phase (eq. 6): neighbours among distinct premises, and their weights, by text.

    Args:
      table: vectors of all texts.
      premises: rows of it to search in and for, more than k.
      k: neighbours of each.
      regularisation: see `loss.lle_weights`.

    Returns:
      Rows of the table and weights; zeros for texts that are no premises.
    """
    space, rows = table[premises], jnp.arange(len(premises))
    near = loss.neighbours(space, rows, k)
    weights = loss.lle_weights(space, rows, near, regularisation)
    index = jnp.zeros((len(table), k), jnp.int32).at[premises].set(premises[near])
    return index, jnp.zeros((len(table), k)).at[premises].set(weights)
