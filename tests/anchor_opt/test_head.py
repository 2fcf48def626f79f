import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from anchor_opt.models import head
from common.run.workdir import Workdir
from common.spaces.labelled_vectors import LabelledVectors
from tests.samples import unit_rows

epoch = jax.jit(head.epoch, static_argnames="settings")


def settings(form="published", width=6, classes=3, learning_rate=1e-3):
    training = head.Training(epochs=30, batch_size=32, learning_rate=learning_rate)
    return head.Settings(form=form, width=width, num_classes=classes, training=training)


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


@pytest.mark.slow
@pytest.mark.parametrize("form", head.FORMS)
def test_training_learns_and_depends_on_the_random_seed_alone(form):
    x = unit_rows(0, 330, 20)  # 10 batches, and 10 rows that are skipped
    labels = jnp.asarray((x[:, 0] > 0).astype(int))
    chosen = settings(form, width=20, classes=2, learning_rate=1e-2)
    last_losses = []
    for random_seed in (0, 0, 1):
        state = head.init(chosen, random_seed)
        data = head.Data(jnp.asarray(x), labels, jax.random.key(random_seed))
        losses = []
        for index in range(20):
            state, metrics = epoch(state, index, data, chosen)
            losses.append(float(metrics["loss"]))
        last_losses.append(losses[-1])
        right = np.asarray(head.predict(state.parameters, x, chosen)) == np.asarray(labels)
        assert losses[-1] < 0.6 * losses[0] and right.mean() > 0.8
    assert last_losses[0] == last_losses[1] != last_losses[2]


@pytest.mark.slow
def test_each_head_is_tested_on_each_space_of_its_dimension(tmp_path):
    x, y, z = unit_rows(0, 200, 6), unit_rows(1, 200, 6), unit_rows(2, 200, 4)
    spaces = {}
    for name, rows in (("x", x), ("y", y), ("z", z)):
        labels = np.split((rows[:, 0] > 0).astype(int), [150])
        spaces[name] = LabelledVectors(rows[:150], rows[150:], *labels)

    def run():
        return head.train_and_test(
            spaces,
            {name: f"part/{name}" for name in spaces},
            head.Training(epochs=30, batch_size=32, learning_rate=1e-2),
            forms=("published",),
            num_classes=2,
            random_seed=0,
            work=Workdir(tmp_path, {}),
        )

    scores = run()
    f1 = {(score.decoder, score.encoder): score.f1 for score in scores}
    assert set(f1) == {("x", "x"), ("x", "y"), ("y", "x"), ("y", "y"), ("z", "z")}
    assert min(f1.values()) > 0.7  # with 150 training rows
    for score in scores:  # with two classes the weighted F1 is near the accuracy
        assert abs(1 - score.mae - score.f1) < 0.05
    assert scores == run()  # from the checkpoints
