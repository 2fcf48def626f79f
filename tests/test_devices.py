"""Trainings of all papers on several devices have the numbers of one, and are compiled once."""

import dataclasses
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from anchor_opt import head
from common import cbow
from common.data.sets.corpus import Corpus
from common.run import train
from common.run.settings import settings
from common.run.workdir import Workdir
from configs.lpl import nli as nli_config
from configs.lpl import word_alignment
from embed_match import glove, lstm
from lpl import loss, methods, nli, training
from tests import commands
from wasserstein_embed import cloud, metric_embed, siamese, word_embed

BATCH = 12  # of which eight devices make four parts, each of them on two devices


def of_images():
    rng, key = np.random.default_rng(0), jax.random.key(0)
    images = jnp.asarray(rng.integers(0, 256, (30, 16, 16, 1), dtype=np.uint8))
    labels = np.arange(30) % 3
    output = {"num_points": 3, "dimensions": 2, "weights": "uniform", "unit_norm": False}
    pixels = {"image_shape": (16, 16, 1), "pixel_mean": 0.1, "pixel_std": 0.3}
    values = {"margin": 0.6, "loss_power": 2.0, "steps": 3, "learning_rate": 1e-3}
    solver = {"ground": "euclidean", "p": 2.0, "epsilon": 1.0, "iterations": 5}
    clouds = siamese.Training(
        network=siamese.Network(**pixels, **output),
        distance=cloud.Distance(**solver, value="transport_cost", implicit_diff=False),
        **values,
        temperature=None,
        batch_size=BATCH,
        decay_after=0.8,
    )
    cosine = dataclasses.replace(clouds, distance=None, temperature=0.1)
    data = siamese.Data(images, siamese.group_by_class(labels), key)
    for name, chosen in (("clouds", clouds), ("cosine", cosine)):
        yield name, siamese.step, siamese.init(chosen, key), data, chosen


def of_words():
    rng, key = np.random.default_rng(0), jax.random.key(0)
    texts = rng.integers(-1, 8, 60)
    tokens, labels = jnp.asarray(texts), jnp.arange(15) % 2
    cloud_of_word = {"geometry": "wasserstein", "num_points": 3, "dimension": 2, "hidden_size": 8}
    values = {"window": 1, "margin": 1.0, "epsilon": 0.2, "iterations": 5, "spread": 0.0}
    steps = {"batch_size": BATCH, "updates_per_step": 2, "steps": 3, "learning_rate": 1e-2}
    chosen = word_embed.Settings(**cloud_of_word, **values, **steps)
    data = word_embed.Data(tokens, jnp.arange(1, 9) / 8, key)
    yield "words", word_embed.step, word_embed.init(chosen, 8, key), data, chosen
    values = {"dim": 6, "window": 2, "x_max": 10.0, "power": 0.75, "learning_rate": 0.1}
    chosen = glove.Settings(**values, blocks=3, epochs_per_step=2, steps=2)
    data = glove.data(glove.cooccurrence(texts, 8, 2), chosen, key)
    yield "glove", glove.step, glove.init(chosen, 8, key), data, chosen
    values = {"unit_norm": True, "max_length": 4, "hidden_size": 8}
    chosen = lstm.Settings(**values, **steps)
    vectors = jnp.asarray(rng.normal(size=(8, 6)), jnp.float32)
    data = lstm.Data(tokens.reshape(15, 4), labels, key)
    yield "lstm", lstm.step, lstm.init(chosen, vectors, key), data, chosen
    values = {"dim": 6, "window": 2, "negatives": 3, "shared_negatives": 5, "subsample": 1.0}
    values |= {"segments": 8, "segment_length": 3, "copy_batches": 2, "epochs": 2, "shards": 1}
    chosen = cbow.Settings(**values, copies=2, learning_rate=0.5)
    data = cbow.data(Corpus(list("abcdefgh"), np.full(8, 1 / 8), texts), chosen, key)
    yield "cbow", cbow.step, cbow.init(chosen, 8, key), data, chosen


def of_nodes():
    key = jax.random.key(0)
    first, second = (jnp.asarray(rows) for rows in np.triu_indices(9, 1))
    data = metric_embed.Data(first, second, (second - first) / 4)
    steps = {"init_range": (-0.5, 0.5), "steps": 30, "learning_rate": 0.01}
    solver = {"epsilon": (0.5, 0.1), "iterations": 3, "debiased": True, "warm_start": True}
    chosen = metric_embed.Settings(geometry="wasserstein", shape=(3, 2), **steps, **solver)
    state = metric_embed.init(chosen, 9, jax.random.split(key, 1))
    yield "divergence", metric_embed.step, state, data, chosen


def of_vectors():
    rng, key = np.random.default_rng(0), jax.random.key(0)
    x, rows = jnp.asarray(rng.normal(size=(30, 6)), jnp.float32), jnp.arange(30)
    values = head.Training(epochs=3, batch_size=BATCH, learning_rate=1e-2)
    chosen = head.Settings(form="published", width=6, num_classes=3, training=values)
    yield "head", head.epoch, head.init(chosen, 0), head.Data(x, rows % 3, key), chosen
    near = loss.neighbours(x, rows, 4)
    weights = loss.lle_weights(x, rows, near)
    steps = {"batch": BATCH, "updates": 30, "learning_rate": 0.01}
    parameters, apply, classify = nli.init("mlp", 6, 5, 7, jax.random.split(key, 2))
    values = {"apply": apply, "classify": classify, "gamma": 0.1, "negative_loss_floor": -2.0}
    chosen = settings(nli.Settings, nli_config.get_config(), **values, **steps)
    classes = jnp.arange(40).reshape(2, 20) % 3
    pairs = nli.EncodedPairs(*jnp.asarray(rng.integers(0, 30, (2, 2, 20))), classes)
    keys = jax.random.split(key, 2)
    data = nli.Data(x, near, weights, jnp.ones(2), jnp.asarray(20), pairs, keys)
    yield "inference", nli.step, nli.init_state(parameters, chosen), data, chosen
    config = word_alignment.get_config().lpa_mse
    chosen = settings(methods.GradientDescent, config, map="mlp", apply=training.linear, **steps)
    data = methods.Data(x, x[::-1], x[near], weights, jnp.asarray(30), key)
    yield "lpl", training.step, training.init_state(jnp.eye(6), chosen), data, chosen


def records(folder):
    """What two steps of every training log, each of which is a chunk, and the programs compiled."""
    work, before = Workdir(folder, {}), train._chunk._cache_size()
    for name, *rest in (*of_images(), *of_words(), *of_nodes(), *of_vectors()):
        train.run(*rest, num_steps=2, chunk=1, work=work, part=name, progress=False)
    return work.metrics.records(), train._chunk._cache_size() - before


@pytest.mark.slow
def test_trainings_on_eight_devices_have_the_losses_of_one(tmp_path):
    code = "import pathlib, sys, jax, json\nfrom tests import test_devices\n"
    code += "assert jax.device_count() == 8\nfolder = pathlib.Path(sys.argv[1])\n"
    code += "(folder / 'found.json').write_text(json.dumps(test_devices.records(folder)))"
    command = [sys.executable, "-c", code, tmp_path / "eight"]
    assert subprocess.run(command, env=commands.on_devices(8)).returncode == 0
    assert jax.device_count() == 1
    on_one, _ = records(tmp_path / "one")  # afterwards, for its memory
    on_eight, programs = json.loads((tmp_path / "eight/found.json").read_text())
    assert programs == 10  # one for each training, though it has two chunks
    assert len(on_eight) == len(on_one) == 20
    for one, eight in zip(on_one, on_eight, strict=True):
        about = [(record.pop("part"), record.pop("step")) for record in (one, eight)]
        assert about[0] == about[1] and one.keys() == eight.keys()
        values, expected = (np.array([*record.values()]) for record in (eight, one))
        assert np.isfinite(values).all()
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-6, err_msg=str(about))
