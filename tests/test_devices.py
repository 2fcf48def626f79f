"""Trainings of all papers on several devices have the numbers of one, and are compiled once."""

import subprocess
import sys

import jax
import numpy as np
import pytest

from tests import commands

pytestmark = pytest.mark.slow

# The batches of the configs, and some that eight devices do not divide.
BATCHES = {
    "config": {"images": 128, "words": 1_024, "vit": 64, "head": 32, "lstm": 64, "nli": 64,
        "lpl": 500, "nodes": 16, "vocabulary": 8, "copies": 2},
    "awkward": {"images": 12, "words": 15, "vit": 15, "head": 12, "lstm": 12, "nli": 15, "lpl": 30,
        "nodes": 7, "vocabulary": 9, "copies": 3},
}  # fmt: skip
TRAININGS = """
import dataclasses, logging, pathlib, tempfile
import jax, jax.numpy as jnp, numpy as np
import common
from anchor_opt.models import head, vit
from common import cbow
from common.data.sets.corpus import Corpus
from common.run import train
from common.run.settings import settings
from common.run.workdir import Workdir
from configs.lpl import nli as nli_config, word_alignment
from embed_match import glove, lstm
from lpl import loss, methods, nli, training
from wasserstein_embed import cloud, metric_embed, siamese, word_embed

rng, key = np.random.default_rng(0), jax.random.key(0)
images, labels = rng.integers(0, 256, (30, 16, 16, 1), dtype=np.uint8), np.arange(30) % 3
images, labels = jnp.asarray(images), jnp.asarray(labels)
x = jnp.asarray(rng.normal(size=(30, 6)), jnp.float32)
texts = jnp.asarray(rng.integers(-1, 8, 60))
curves, compiled = {}, []
train.SAVE_SECONDS = float("inf")

class Compilations(logging.Handler):
    def emit(self, record):
        if "Finished XLA compilation of jit(_chunk)" in record.getMessage():
            compiled.append(record)

class Record(Workdir):  # without files but for checkpoints
    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp())

    def log(self, part, rows):
        for index, values in rows.items():
            curves[f"{part}-{index}"] = [values[name] for name in sorted(values)]

    def forget(self, *_):
        pass

    close_log = forget

def run(name, step, state, data, chosen):
    options = {"num_steps": 2, "chunk": 1, "work": Record(), "part": name, "progress": False}
    train.run(step, state, data, chosen, **options)

jax.config.update("jax_log_compiles", True)
listener = Compilations()
logging.getLogger("jax._src.dispatch").addHandler(listener)

network = siamese.Network(image_shape=(16, 16, 1), num_points=3, dimensions=2, weights="uniform",
    unit_norm=False, pixel_mean=0.1, pixel_std=0.3)
distance = cloud.Distance(ground="euclidean", p=2.0, epsilon=1.0, iterations=5,
    value="transport_cost", implicit_diff=False)
clouds = siamese.Training(network=network, distance=distance, margin=0.6, loss_power=2.0,
    temperature=None, batch_size=batch["images"], steps=3, learning_rate=1e-3, decay_after=0.8)
data = siamese.Data(images, siamese.group_by_class(np.asarray(labels)), key)
run("clouds", siamese.step, siamese.init(clouds, key), data, clouds)
cosine = dataclasses.replace(clouds, distance=None, temperature=0.1)
run("cosine", siamese.step, siamese.init(cosine, key), data, cosine)

chosen = word_embed.Settings(geometry="wasserstein", num_points=3, dimension=2, hidden_size=8,
    window=1, batch_size=batch["words"], updates_per_step=2, margin=1.0, epsilon=0.2,
    iterations=5, spread=0.0, steps=3, learning_rate=1e-2)
data = word_embed.Data(texts, jnp.arange(1, 9) / 8, key)
run("words", word_embed.step, word_embed.init(chosen, 8, key), data, chosen)

chosen = vit.Settings(shape=vit.Shape(image=(16, 16, 1), patch=4, width=8, depth=1, heads=2,
    classes=3), training=vit.Training(steps=3, batch=batch["vit"], learning_rate=1e-3, warmup=0.1,
    weight_decay=0.05, shift=2, contrast=1.0, temperature=0.1))
run("vit", vit.step, vit.init(chosen, 0), vit.Data(images, labels, key), chosen)

chosen = head.Settings(form="published", width=6, num_classes=3,
    training=head.Training(epochs=3, batch_size=batch["head"], learning_rate=1e-2))
run("head", head.epoch, head.init(chosen, 0), head.Data(x, labels, key), chosen)

first, second = np.triu_indices(batch["nodes"], 1)
pairs = metric_embed.Data(jnp.asarray(first), jnp.asarray(second), jnp.asarray(second - first) / 4)
vectors = metric_embed.Settings(geometry="hyperbolic", shape=(2,), init_range=(-0.5, 0.5), steps=30,
    learning_rate=0.01)
transport = dataclasses.replace(vectors, geometry="wasserstein", shape=(3, 2), epsilon=(0.5, 0.1),
    iterations=3)
for name, given in (("vectors", vectors), ("transport", transport), ("divergence",
        dataclasses.replace(transport, debiased=True, warm_start=True))):
    state = metric_embed.init(given, batch["nodes"], jax.random.split(key, 1))
    run(name, metric_embed.step, state, pairs, given)

chosen = glove.Settings(dim=6, window=2, x_max=10.0, power=0.75, learning_rate=0.1, blocks=3,
    epochs_per_step=2, steps=2)
count = batch["vocabulary"]
data = glove.data(glove.cooccurrence(np.asarray(texts), count, 2), chosen, key)
run("glove", glove.step, glove.init(chosen, count, key), data, chosen)

chosen = lstm.Settings(unit_norm=True, max_length=4, hidden_size=8, batch_size=batch["lstm"],
    updates_per_step=2, steps=3, learning_rate=0.02)
data = lstm.Data(texts.reshape(15, 4), labels[:15] % 2, key)
run("lstm", lstm.step, lstm.init(chosen, x[:8], key), data, chosen)

chosen = cbow.Settings(dim=6, window=2, negatives=3, shared_negatives=5, subsample=1.0, segments=8,
    segment_length=3, copies=batch["copies"], copy_batches=2, epochs=2, shards=1, learning_rate=0.5)
data = cbow.data(Corpus(list("abcdefgh"), np.full(8, 1 / 8), np.asarray(texts)), chosen, key)
run("cbow", cbow.step, cbow.init(chosen, 8, key), data, chosen)

rows = jnp.arange(30)
near = loss.neighbours(x, rows, 4)
weights = loss.lle_weights(x, rows, near)
parameters, apply, classify = nli.init("mlp", 6, 5, 7, jax.random.split(key, 2))
chosen = settings(nli.Settings, nli_config.get_config(), apply=apply, classify=classify,
    gamma=0.1, learning_rate=0.01, batch=batch["nli"], updates=30, negative_loss_floor=-2.0)
classes = jnp.arange(40).reshape(2, 20) % 3
pairs = nli.EncodedPairs(*jnp.asarray(rng.integers(0, 30, (2, 2, 20))), classes)
data = nli.Data(x, near, weights, jnp.ones(2), jnp.asarray(20), pairs, jax.random.split(key, 2))
run("inference", nli.step, nli.init_state(parameters, chosen), data, chosen)

chosen = settings(methods.GradientDescent, word_alignment.get_config().lpa_mse, map="mlp",
    apply=training.linear, batch=batch["lpl"], updates=30, learning_rate=0.01)
data = methods.Data(x, x[::-1], x[near], weights, jnp.asarray(30), key)
run("lpl", training.step, training.init_state(jnp.eye(6), chosen), data, chosen)
logging.getLogger("jax._src.dispatch").removeHandler(listener)
"""


def trainings(batches):
    """The curves of all trainings with the batches of that name, and the number of programs."""
    exec(f"batch = {BATCHES[batches]}\n{TRAININGS}", names := {})
    jax.config.update("jax_log_compiles", False)
    return names["curves"], len(names["compiled"])


def test_trainings_on_eight_devices_have_the_losses_of_one(tmp_path):
    log = tmp_path / "eight.log"
    code = "import jax, numpy as np\nfrom tests import test_devices\n"
    code += "assert jax.device_count() == 8\nfor name in test_devices.BATCHES:\n"
    code += "    curves, compilations = test_devices.trainings(name)\n"
    code += f"    np.savez(f'{tmp_path}/{{name}}.npz', compilations=compilations, **curves)"
    with log.open("wb") as file:  # not a pipe, which the log of compilations would fill
        command = [sys.executable, "-c", code]
        process = subprocess.Popen(command, env=commands.on_devices(8), stderr=file)
    assert jax.device_count() == 1
    on_one = {name: trainings(name)[0] for name in BATCHES}
    assert process.wait() == 0, log.read_text()[-2000:]
    for name, curves in on_one.items():
        losses = dict(np.load(tmp_path / f"{name}.npz"))
        assert losses.pop("compilations") == 13  # one for each training, though it has two chunks
        assert set(losses) == set(curves) and len(curves) == 26
        for part, curve in curves.items():
            assert np.isfinite(curve).all()
            error = f"{part}, {name}"
            np.testing.assert_allclose(curve, losses[part], rtol=1e-4, atol=1e-6, err_msg=error)
