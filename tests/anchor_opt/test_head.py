"""The heads against independent forward passes in NumPy."""

import jax.numpy as jnp
import numpy as np
from flax import nnx

from anchor_opt import head
from tests.samples import unit_rows


def settings(form="published"):
    training = head.Training(epochs=30, batch_size=32, learning_rate=1e-3)
    return head.Settings(form=form, width=6, num_classes=3, training=training)


def numpy_published(parameters, x):
    """The published head, nn.Sequential of Moschella et al.'s code, in NumPy."""

    def linear(layer, x):
        return x @ np.asarray(layer["kernel"]) + np.asarray(layer["bias"])

    def silu(x):
        return x / (1 + np.exp(-x))

    def instance_norm(x):  # each feature over the texts
        return ((x.T - x.T.mean(1, keepdims=True)) / np.sqrt(x.T.var(1, keepdims=True) + 1e-5)).T

    norm = parameters["input_norm"]
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    x = x * np.asarray(norm["scale"]) + np.asarray(norm["bias"])
    x = instance_norm(silu(linear(parameters["first"], x)))
    x = instance_norm(silu(linear(parameters["second"], x)))
    return np.maximum(linear(parameters["out"], x), 0)


def test_the_published_head_agrees_with_numpy():
    model = head.Head(settings(), nnx.Rngs(3))
    parameters = nnx.to_pure_dict(nnx.state(model))
    parameters["input_norm"]["scale"] = jnp.linspace(0.5, 1.5, 6)
    parameters["input_norm"]["bias"] = jnp.linspace(-1, 1, 6)
    nnx.update(model, parameters)
    x = unit_rows(0, 9, 6)
    np.testing.assert_allclose(model(x), numpy_published(parameters, x), atol=1e-5)
    kernel, bias = parameters["first"]["kernel"], parameters["first"]["bias"]
    for values in (kernel, bias):
        assert 0.2 < jnp.abs(values).max() <= 6**-0.5


def test_only_the_published_head_depends_on_the_other_texts_of_the_batch():
    x = unit_rows(0, 40, 6)
    x[20:] += 1.0  # as vectors of another encoder would be
    scores = {}
    for form in head.FORMS:
        model = head.Head(settings(form), nnx.Rngs(0))
        scores[form] = np.asarray(model(x[:20])), np.asarray(model(x))[:20]
    assert np.abs(scores["published"][0] - scores["published"][1]).max() > 0.05
    np.testing.assert_allclose(*scores["inductive"], atol=1e-6)
    normed = np.asarray(head.feature_norm(jnp.asarray(x)))
    np.testing.assert_allclose(normed.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(normed.std(0), 1, atol=1e-2)
