"""The ViT against an independent forward pass in NumPy, and its training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from flax import nnx

from anchor_opt.models import vit
from common.run import train
from common.run.workdir import Workdir

SHAPE = vit.Shape(image=(8, 8, 1), patch=4, width=16, depth=1, heads=4, classes=3)


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


def striped(n):
    """Images of three classes: a bright row at one of three heights."""
    labels = np.arange(n) % 3
    images = np.random.default_rng(0).integers(0, 60, (n, 8, 8, 1), dtype=np.uint8)
    images[np.arange(n), 2 * labels + 1] = 255
    return images, labels


@pytest.mark.slow
def test_training_learns_and_resumes_to_the_same_parameters(tmp_path):
    images, labels = striped(90)
    training = vit.Training(
        steps=40,
        batch=32,
        learning_rate=5e-3,
        warmup=0.1,
        weight_decay=0.05,
        shift=0,
        contrast=1.0,
        temperature=0.1,
    )
    settings = vit.Settings(shape=SHAPE, training=training)

    def run(work, num_steps):
        return train.run(
            vit.step,
            vit.init(settings, 3),
            vit.Data(jnp.asarray(images), jnp.asarray(labels), jax.random.key(3)),
            settings,
            num_steps=num_steps,
            chunk=20,
            work=work,
            part="encoder",
        ).parameters

    whole = run(Workdir(tmp_path / "whole", {}), 40)
    model = vit.with_parameters(SHAPE, whole)
    assert (model.head(model.features(images)).argmax(axis=1) == labels).mean() > 0.9
    stopped = Workdir(tmp_path / "stopped", {})
    run(stopped, 20)
    jax.tree.map(np.testing.assert_array_equal, run(stopped, 40), whole)


def test_the_contrastive_loss_agrees_with_its_definition():
    first, second = jnp.asarray(np.random.default_rng(0).normal(size=(2, 5, 4)), jnp.float32)
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (first, second))
    exponential = np.exp(a @ b.T / 0.1)
    losses = [-np.log(np.diag(exponential) / exponential.sum(axis=axis)).mean() for axis in (0, 1)]
    value = vit.contrastive(first, second, np.arange(5), 0.1)
    np.testing.assert_allclose(value, np.mean(losses), rtol=1e-4)
    assert vit.contrastive(first, first, np.arange(5), 0.1) < value
