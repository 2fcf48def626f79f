"""The network against its plain definition, the pairs, the loss, and several devices."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

from wasserstein_embed import siamese

SHAPE = siamese.Shape((28, 28, 1), 3, 2, False, 0.1307, 0.3081)


def test_the_network_is_the_published_one():
    """Layer by layer with XLA's convolution and pooling, on more images than go at once."""
    model = siamese.Siamese(SHAPE, nnx.Rngs(0))
    parameters = jax.tree.leaves(nnx.state(model))
    sizes = sorted(leaf.size for leaf in parameters)
    assert sizes == sorted(
        [25 * 32, 32, 25 * 32 * 64, 64, 1024 * 256, 256, 256 * 256, 256, 256 * 6, 6, 1, 1, 1, 1]
    )
    images = np.random.default_rng(0).integers(0, 256, (40, 28, 28, 1), dtype=np.uint8)
    x = (images / 255.0 - 0.1307) / 0.3081
    for layer, slope in ((model.conv1, model.prelus[0]), (model.conv2, model.prelus[1])):
        numbers = ("NHWC", "HWIO", "NHWC")
        x = lax.conv_general_dilated(
            jnp.asarray(x, jnp.float32),
            layer.kernel[...],
            (1, 1),
            "VALID",
            dimension_numbers=numbers,
        )
        x = x + layer.bias[...]
        x = jnp.where(x > 0, x, slope.negative_slope[...] * x)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    assert x.shape == (40, 4, 4, 64) and float(model.prelus[1].negative_slope[...]) == 0.25
    x = x.reshape(40, -1)
    for layer in (model.linear1, model.linear2):
        x = x @ layer.kernel[...] + layer.bias[...]
        x = jnp.where(x > 0, x, 0.25 * x)
    expected = (x @ model.linear3.kernel[...] + model.linear3.bias[...]).reshape(40, 3, 2)
    found = siamese.embed(SHAPE, nnx.state(model), jnp.asarray(images))
    assert found.weights is None
    np.testing.assert_allclose(found.points, expected, atol=1e-5)


@pytest.mark.parametrize("image", [(16, 17, 1), (32, 32, 3)])
def test_other_images_and_learned_weights(image):
    shape = SHAPE._replace(image=image, points=4, dimensions=3, weights=True)
    parameters = nnx.state(siamese.Siamese(shape, nnx.Rngs(0)))
    found = siamese.embed(shape, parameters, jnp.ones((2, *image), jnp.uint8))
    assert found.points.shape == (2, 4, 3)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, rtol=1e-5)


def test_pairs_are_balanced_and_as_said():
    labels = np.array([7, 7, 3, 3, 3, 5, 5, 9, 9, 9, 9])
    classes = siamese.by_class(labels)
    first, second, same = (np.asarray(x) for x in siamese.draw(jax.random.key(0), classes, 6000))
    assert same.mean() == 0.5
    np.testing.assert_array_equal(labels[first] == labels[second], same)
    assert (first != second).all()
    # Every other image of the class and every other class is as likely.
    for image in (2, 7):
        partners = second[same & (first == image)]
        assert set(partners) == set(np.flatnonzero(labels == labels[image])) - {image}
    others = labels[second[~same & (labels[first] == 9)]]
    share = np.array([(others == label).mean() for label in (7, 3, 5)])
    np.testing.assert_allclose(share, 1 / 3, atol=0.06)


def test_the_contrastive_loss():
    """Half of the squares: (.2^2 + (.6 - .5)^2 + 0) / 2 / 3."""
    distance, same = jnp.array([0.2, 0.5, 0.9]), jnp.array([True, False, False])
    found = siamese.contrastive(distance, same, 0.6)
    np.testing.assert_allclose(found, (0.04 + 0.01) / 6, rtol=1e-6)


TRAINING = """
import jax, numpy as np
import common
from wasserstein_embed import cloud, siamese
shape = siamese.Shape((16, 16, 1), 3, 2, False, 0.1, 0.3)
rng = np.random.default_rng(0)
images = rng.integers(0, 256, (30, 16, 16, 1), dtype=np.uint8)
data = siamese.Data(images, siamese.by_class(np.arange(30) % 3), jax.random.key(0))
distance = cloud.Distance("euclidean", 2.0, 1.0, 5, "cost", False)
settings = siamese.Training(shape, distance, 0.6, 16, 3, 1e-3, 0.8)
state = siamese.init(settings, data.key)
step = jax.jit(siamese.step, static_argnums=3)
losses = []
for i in range(3):
    state, metrics = step(state, i, data, settings)
    losses.append([float(metrics[name]) for name in ("loss", "positive", "negative")])
"""


def test_eight_devices_have_the_losses_of_one(tmp_path):
    # LLVM's optimisation is a third of what compiling for eight devices takes.
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=8"
    flags += " --xla_backend_optimization_level=0"
    environment = os.environ | {"XLA_FLAGS": flags}
    environment |= {"JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(sys.path)}
    path = tmp_path / "losses.npy"
    code = f"{TRAINING}\nassert jax.device_count() == 8\nnp.save({str(path)!r}, losses)"
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    names = {}
    exec(TRAINING, names)
    assert jax.device_count() == 1 and process.wait() == 0
    assert min(map(min, names["losses"])) > 0
    np.testing.assert_allclose(names["losses"], np.load(path), rtol=2e-5)
