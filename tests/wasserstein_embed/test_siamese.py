"""The network against its plain definition, the pairs, and the loss."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

from common.errors import UserError
from wasserstein_embed import siamese

OUTPUT = {"num_points": 3, "dimensions": 2, "weights": "uniform", "unit_norm": False}
NETWORK = siamese.Network(image_shape=(28, 28, 1), **OUTPUT, pixel_mean=0.1307, pixel_std=0.3081)


def test_the_network_equals_its_layers_by_lax():
    """Layer by layer with XLA's convolution and pooling, on more images than one block."""
    model = siamese.Siamese(NETWORK, nnx.Rngs(0))
    sizes = sorted(leaf.size for leaf in jax.tree.leaves(nnx.state(model)))
    assert sizes == sorted(
        [25 * 32, 32, 25 * 32 * 64, 64, 1024 * 256, 256, 256 * 256, 256, 256 * 6, 6, 1, 1, 1, 1]
    )
    images = np.random.default_rng(0).integers(0, 256, (40, 28, 28, 1), dtype=np.uint8)
    x = jnp.asarray((images / 255.0 - 0.1307) / 0.3081, jnp.float32)
    for layer, slope in ((model.conv1, model.prelus[0]), (model.conv2, model.prelus[1])):
        kernel, axes = layer.kernel[...], ("NHWC", "HWIO", "NHWC")
        x = lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=axes)
        x = x + layer.bias[...]
        x = jnp.where(x > 0, x, slope.negative_slope[...] * x)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    assert x.shape == (40, 4, 4, 64) and float(model.prelus[1].negative_slope[...]) == 0.25
    x = x.reshape(40, -1)
    for layer in (model.linear1, model.linear2):
        x = x @ layer.kernel[...] + layer.bias[...]
        x = jnp.where(x > 0, x, 0.25 * x)
    expected = (x @ model.linear3.kernel[...] + model.linear3.bias[...]).reshape(40, 3, 2)
    clouds = siamese.embed(NETWORK, jnp.asarray(images), nnx.state(model))
    assert clouds.weights is None
    np.testing.assert_allclose(clouds.points, expected, atol=1e-5)


@pytest.mark.parametrize("image_shape", [(16, 17, 1), (32, 32, 3)])
def test_other_image_sizes_and_learned_weights(image_shape):
    changes = {"num_points": 4, "dimensions": 3, "weights": "learned"}
    network = replace(NETWORK, image_shape=image_shape, **changes)
    parameters = nnx.state(siamese.Siamese(network, nnx.Rngs(0)))
    clouds = siamese.embed(network, jnp.ones((2, *image_shape), jnp.uint8), parameters)
    assert clouds.points.shape == (2, 4, 3)
    np.testing.assert_allclose(clouds.weights.sum(axis=1), 1, rtol=1e-5)


def test_pairs_are_balanced_and_uniform_within_and_between_classes():
    labels = np.array([7, 7, 3, 3, 3, 5, 5, 9, 9, 9, 9])
    classes = siamese.group_by_class(labels)
    pairs = siamese.sample_pairs(jax.random.key(0), classes, 6000)
    first, second, same = (np.asarray(x) for x in pairs)
    assert same.mean() == 0.5
    np.testing.assert_array_equal(labels[first] == labels[second], same)
    assert (first != second).all()
    for image in (2, 7):
        partners = second[same & (first == image)]
        assert set(partners) == set(np.flatnonzero(labels == labels[image])) - {image}
    others = labels[second[~same & (labels[first] == 9)]]
    fractions = np.array([(others == label).mean() for label in (7, 3, 5)])
    np.testing.assert_allclose(fractions, 1 / 3, atol=0.06)


@pytest.mark.parametrize("power, expected", [(2.0, (0.04 + 0.01) / 2 / 3), (1.0, 0.3 / 3)])
def test_the_contrastive_loss_is_the_mean_of_powers(power, expected):
    values = {"batch_size": 2, "steps": 1, "learning_rate": 1.0, "decay_after": 1.0}
    training = siamese.Training(
        network=NETWORK, distance=None, temperature=None, margin=0.6, loss_power=power, **values
    )
    distance, same = jnp.array([0.2, 0.5, 0.9]), jnp.array([True, False, False])
    loss = siamese.contrastive_loss(distance, same, training)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: siamese.group_by_class(np.array([1, 1, 2])), "the smallest of 1 images"),
        (lambda: siamese.group_by_class(np.zeros(4, int)), "has 1 classes"),
        (lambda: siamese.Siamese(replace(NETWORK, weights="heavy"), nnx.Rngs(0)), "no 'heavy'"),
    ],
)
def test_mistakes_are_user_errors(call, message):
    with pytest.raises(UserError, match=message):
        call()


def test_the_cosine_loss_equals_its_definition():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    label = np.array([0, 1, 2, 0, 1, 0, 0, 1, 3])  # images 2 and 8 are alone in their classes
    expected = 0.0
    for i in range(9):
        others = [a for a in range(9) if a != i]
        positives = [p for p in others if label[p] == label[i]]
        total = sum(np.exp(x[i] @ x[a] / 0.3) for a in others)
        terms = [np.log(np.exp(x[i] @ x[p] / 0.3) / total) for p in positives]
        expected -= np.mean(terms) / 9 if terms else 0
    loss = siamese.cosine_loss(x, label, np.arange(9), 0.3)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    gradient = jax.grad(siamese.cosine_loss)(jnp.asarray(x), label, np.arange(9), 0.3)
    assert np.isfinite(gradient).all()
