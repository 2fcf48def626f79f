"""The ViT against an independent forward pass, its training, and weights by timm's names."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from flax import nnx

from anchor_opt import vit, weights
from common import train
from common.errors import UserError
from common.workdir import Workdir

HALF = (0.5,)
SHAPE = vit.Shape((8, 8, 1), 4, 16, 1, 4, 3, "mean", HALF, HALF)


def reference(p, images, mean, std):
    """The class token of a timm ViT with heads of 64, in plain numpy, image by image."""
    patch = p["patch_embed.proj.weight"].shape[-1]

    def norm(x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
        return x * p[f"{name}.weight"] + p[f"{name}.bias"]

    def linear(x, name):
        return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]

    out = []
    for image in (images / 255 - mean) / std:
        tokens = [p["cls_token"][0, 0]]
        for top in range(0, image.shape[0], patch):
            for left in range(0, image.shape[1], patch):
                pixels = image[top : top + patch, left : left + patch].transpose(2, 0, 1)
                kernel = p["patch_embed.proj.weight"]
                tokens.append((kernel * pixels).sum((1, 2, 3)) + p["patch_embed.proj.bias"])
        x = np.stack(tokens) + p["pos_embed"][0]
        for i in range(sum(name.endswith("norm1.weight") for name in p)):
            q, k, v = np.split(linear(norm(x, f"blocks.{i}.norm1"), f"blocks.{i}.attn.qkv"), 3, 1)
            heads = []
            for at in range(0, q.shape[1], 64):
                one = slice(at, at + 64)
                scores = scipy.special.softmax(q[:, one] @ k[:, one].T / 8, axis=1)
                heads.append(scores @ v[:, one])
            x = x + linear(np.concatenate(heads, 1), f"blocks.{i}.attn.proj")
            hidden = linear(norm(x, f"blocks.{i}.norm2"), f"blocks.{i}.mlp.fc1")
            hidden = hidden * (1 + scipy.special.erf(hidden / np.sqrt(2))) / 2
            x = x + linear(hidden, f"blocks.{i}.mlp.fc2")
        out.append(norm(x, "norm")[0])
    return np.stack(out)


def test_timm_weights_against_plain_numpy(timm_weights, tmp_path):
    np.savez(tmp_path / "vit.npz", **timm_weights)
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
    model = weights.load(tmp_path / "vit.npz", mean, std)
    assert model.shape.image == (12, 12, 3) and model.shape.heads == 2
    images = np.random.default_rng(1).integers(0, 256, (5, 12, 12, 3), dtype=np.uint8)
    expected = reference(timm_weights, images, np.array(mean), np.array(std))
    found = vit.encode(model, images, batch=2)  # the last batch is padded
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_grey_images_of_another_size_are_fitted():
    images = np.random.default_rng(0).integers(0, 256, (2, 6, 6, 1), dtype=np.uint8)
    fitted = vit.fitted(jnp.asarray(images), (12, 12, 3))
    assert fitted.shape == (2, 12, 12, 3) and fitted.min() >= 0 and fitted.max() <= 255
    np.testing.assert_array_equal(fitted[..., 0], fitted[..., 2])
    np.testing.assert_array_equal(vit.fitted(jnp.asarray(images), (6, 6, 1)), images)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"norm.bias": None}, "no parameter norm.bias"),
        ({"blocks.1.mlp.fc1.bias": np.zeros(3)}, r"fc1.bias in .* has the shape \(3,\)"),
        ({"pos_embed": np.zeros((1, 9, 128))}, "square images with a class token"),
        ({"pos_embed": np.zeros((1, 1, 128))}, "square images with a class token"),
        ({"patch_embed.proj.weight": np.zeros((0, 3, 4, 4))}, "square images with a class token"),
        ({"blocks.999999999.norm1.bias": np.zeros(128)}, "block 999999999 but not all before"),
        ({"norm.bias": np.full(128, np.nan)}, "norm.bias in .* is not finite"),
        ({"norm.bias": np.array(["a"] * 128)}, "norm.bias in .* is not finite"),
        ({"cls_token": np.array([None])}, "no whole .npz of plain arrays"),
    ],
)
def test_weights_that_do_not_fit(timm_weights, tmp_path, change, says):
    changed = {k: v for k, v in (timm_weights | change).items() if v is not None}
    np.savez(tmp_path / "vit.npz", **changed)
    with pytest.raises(UserError, match=says):
        weights.load(tmp_path / "vit.npz", HALF, HALF)


def test_no_file_of_weights(tmp_path):
    with pytest.raises(UserError, match=r"no file of weights .*missing\.npz"):
        weights.load(tmp_path / "missing.npz", HALF, HALF)


def test_shifted_moves_whole_images_and_fills_with_black():
    images = jnp.zeros((64, 8, 8, 1), jnp.uint8).at[:, 4, 3].set(200)
    moved = vit.shifted(jax.random.key(0), images, 2)
    rows, columns = np.nonzero(np.asarray(moved)[..., 0])[1:]
    assert len(rows) == 64  # each pixel still there, and none more
    assert set(rows) == {2, 3, 4, 5, 6} and set(columns) == {1, 2, 3, 4, 5}
    np.testing.assert_array_equal(vit.shifted(jax.random.key(0), images, 0), images)


def test_pooling():
    images = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 1), dtype=np.uint8)
    parameters = nnx.state(vit.ViT(SHAPE, nnx.Rngs(0)))
    found = [
        vit.encode(vit.with_parameters(SHAPE._replace(pool=pool), parameters), images, batch=3)
        for pool in ("mean", "token")
    ]
    assert found[0].shape == found[1].shape == (3, 16)
    assert np.abs(found[0] - found[1]).max() > 0.1


def striped(n):
    """Bright rows at three heights: three classes."""
    labels = np.arange(n) % 3
    images = np.random.default_rng(0).integers(0, 60, (n, 8, 8, 1), dtype=np.uint8)
    images[np.arange(n), 2 * labels + 1] = 255
    return images, labels


def test_training_learns_and_resumes(tmp_path):
    images, labels = striped(90)
    settings = vit.Training(SHAPE, 40, 32, 5e-3, 0.1, 0.05, 0, 1.0, 0.1)

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
    assert (np.asarray(jax.jit(model)(images)).argmax(axis=1) == labels).mean() > 0.9
    stopped = Workdir(tmp_path / "stopped", {})
    run(stopped, 20)
    jax.tree.map(np.testing.assert_array_equal, run(stopped, 40), whole)


def test_the_contrastive_loss_by_its_definition():
    first, second = np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32)
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (first, second))
    likely = np.exp(a @ b.T / 0.1)
    losses = [-np.log(np.diag(likely) / likely.sum(axis=axis)).mean() for axis in (0, 1)]
    found = vit.contrastive(jnp.asarray(first), jnp.asarray(second), 0.1)
    np.testing.assert_allclose(found, np.mean(losses), rtol=1e-4)
    assert vit.contrastive(jnp.asarray(first), jnp.asarray(first), 0.1) < found
