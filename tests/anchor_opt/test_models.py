"""The ViT and the heads against independent forward passes in NumPy, and the loss of the ViT."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from flax import nnx

from anchor_opt.models import head, vit
from tests.samples import unit_rows


def reference(p, images, patch, heads):
    """The mean over the patches of the last layer, image by image."""

    def norm(x, layer):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
        return x * layer["scale"] + layer["bias"]

    def linear(x, layer):
        return x @ layer["kernel"] + layer["bias"]

    out = []
    for image in images / 127.5 - 1:
        tokens = [p["token"]]
        for top in range(0, image.shape[0], patch):
            for left in range(0, image.shape[1], patch):
                pixels = image[top : top + patch, left : left + patch]
                tokens.append(linear(pixels.ravel(), p["embed"]))
        x = np.stack(tokens) + p["positions"]
        for block in p["blocks"].values():
            q, k, v = np.split(linear(norm(x, block["norm1"]), block["qkv"]), 3, 1)
            attended = []
            for one in np.split(np.arange(q.shape[1]), heads):
                scores = q[:, one] @ k[:, one].T / np.sqrt(len(one))
                attended.append(scipy.special.softmax(scores, axis=1) @ v[:, one])
            x = x + linear(np.concatenate(attended, 1), block["proj"])
            hidden = linear(norm(x, block["norm2"]), block["fc1"])
            hidden = hidden * (1 + scipy.special.erf(hidden / np.sqrt(2))) / 2
            x = x + linear(hidden, block["fc2"])
        out.append(norm(x, p["norm"])[1:].mean(0))
    return np.stack(out)


def test_features_agree_with_numpy():
    shape = vit.Shape(image=(12, 8, 3), patch=4, width=32, depth=2, heads=2, classes=3)
    rng = np.random.default_rng(0)
    parameters = jax.tree.map(
        lambda x: jnp.asarray(0.3 * rng.normal(size=x.shape), jnp.float32),
        nnx.state(vit.ViT(shape, nnx.Rngs(0))),
    )
    images = rng.integers(0, 256, (5, 12, 8, 3), dtype=np.uint8)
    values = jax.tree.map(np.asarray, nnx.to_pure_dict(parameters))
    model = vit.with_parameters(shape, parameters)
    features = vit.encode(model, images, batch=2)  # the last has one
    np.testing.assert_allclose(features, reference(values, images, patch=4, heads=2), atol=2e-4)


def test_shifted_images_are_padded_with_zeros():
    images = jnp.zeros((64, 8, 8, 1), jnp.uint8).at[:, 4, 3].set(200)
    shifted = vit.shifted(jax.random.key(0), images, 2)
    rows, columns = np.nonzero(np.asarray(shifted)[..., 0])[1:]
    assert len(rows) == 64  # every bright pixel is there once
    assert set(rows) == {2, 3, 4, 5, 6} and set(columns) == {1, 2, 3, 4, 5}
    np.testing.assert_array_equal(vit.shifted(jax.random.key(0), images, 0), images)


def test_the_contrastive_loss_agrees_with_its_definition():
    first, second = jnp.asarray(np.random.default_rng(0).normal(size=(2, 5, 4)), jnp.float32)
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (first, second))
    exponential = np.exp(a @ b.T / 0.1)
    losses = [-np.log(np.diag(exponential) / exponential.sum(axis=axis)).mean() for axis in (0, 1)]
    value = vit.contrastive(first, second, np.arange(5), 0.1)
    np.testing.assert_allclose(value, np.mean(losses), rtol=1e-4)
    assert vit.contrastive(first, first, np.arange(5), 0.1) < value


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
