"""Trainings on several devices: images and words."""

import os
import subprocess
import sys

import jax
import numpy as np

TRAINING = """
import dataclasses
import jax, numpy as np
import common
from wasserstein_embed import cloud, siamese, word_embed
network = siamese.Network(image_shape=(16, 16, 1), num_points=3, dimensions=2, weights="uniform",
    unit_norm=False,
    pixel_mean=0.1, pixel_std=0.3)
rng = np.random.default_rng(0)
images = rng.integers(0, 256, (30, 16, 16, 1), dtype=np.uint8)
data = siamese.Data(images, siamese.group_by_class(np.arange(30) % 3), jax.random.key(0))
distance = cloud.Distance(ground="euclidean", p=2.0, epsilon=1.0, iterations=5,
    value="transport_cost", implicit_diff=False)
settings = siamese.Training(network=network, distance=distance, margin=0.6, loss_power=2.0,
    temperature=None, batch_size=16, steps=3, learning_rate=1e-3, decay_after=0.8)
cosine = dataclasses.replace(network, unit_norm=True)
changes = {"network": cosine, "distance": None, "temperature": 0.1}
losses = []
for chosen in (settings, dataclasses.replace(settings, **changes)):
    state = siamese.init(chosen, data.key)
    step = jax.jit(siamese.step, static_argnums=3)
    for i in range(3):
        state, metrics = step(state, i, data, chosen)
        losses.append([float(metrics[name]) for name in ("loss", "positive", "negative")])
settings = word_embed.Settings(geometry="wasserstein", num_points=3, dimension=2, hidden_size=8,
    window=1, batch_size=16, updates_per_step=2, margin=1.0, epsilon=0.2, iterations=5, steps=3,
    learning_rate=1e-2)
texts = word_embed.Data(np.arange(60) % 9 - 1, np.arange(1, 9) / 8, data.key)
texts = jax.tree.map(jax.numpy.asarray, texts)
state = word_embed.init(settings, 8, data.key)
step = jax.jit(word_embed.step, static_argnums=3)
for i in range(3):
    state, metrics = step(state, i, texts, settings)
    losses.append([float(metrics[name]) for name in ("loss", "positive", "negative")])
"""


def test_losses_on_eight_devices_equal_those_on_one(tmp_path):
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=8"
    flags += " --xla_backend_optimization_level=0"  # shortens the compilation by a third
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
