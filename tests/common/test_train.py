from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.errors import UserError
from common.run import train
from common.run.workdir import Workdir

pytestmark = pytest.mark.usefixtures("all_checkpoints")


def noisy_step(state, index, data, settings):
    """Gradient descent with noise from the step's index, so that an error in resuming is seen."""
    noise = jax.random.normal(jax.random.key(index), state.shape)
    gradient = 2 * (state - data) + 0.1 * noise
    return state - settings * gradient, {"loss": jnp.sum((state - data) ** 2)}


def run(path, *, done=None, num_steps=20):
    work = Workdir(path, {})
    options = {"num_steps": num_steps, "chunk": 4, "work": work, "part": "fit/all", "done": done}
    options["evaluate"] = lambda state: {"norm": jnp.linalg.norm(state)}
    try:
        return work, train.run(noisy_step, jnp.zeros(3), jnp.arange(3.0), 0.1, **options)
    finally:
        work._lock.close()


def test_all_steps_are_done_logged_and_evaluated_by_chunk(tmp_path):
    work, state = run(tmp_path)
    expected = jnp.zeros(3)
    for i in range(20):
        expected, _ = noisy_step(expected, i, jnp.arange(3.0), 0.1)
    np.testing.assert_allclose(state, expected, rtol=1e-6)
    records = work.metrics.records()
    assert [r["step"] for r in records] == list(range(21))
    assert [r["step"] for r in records if "norm" in r] == [0, 4, 8, 12, 16, 20]


def test_a_shorter_last_chunk_is_not_compiled_again(tmp_path):
    before = train._chunk._cache_size()
    work, _ = run(tmp_path / "ten", num_steps=10)
    assert [r["step"] for r in work.metrics.records()] == list(range(11))
    assert all("loss" in r for r in work.metrics.records()[1:])
    assert train._chunk._cache_size() - before <= 1
    complete, _ = run(tmp_path / "complete")
    losses = [[r["loss"] for r in of.metrics.records()[1:11]] for of in (work, complete)]
    np.testing.assert_allclose(*losses, rtol=1e-6)


def counting_step(state, index, data, settings):
    return {name: value + 1 for name, value in state.items()}, {}


@pytest.mark.parametrize("start", [0.0, np.zeros((), np.float32), jnp.zeros(2)])
def test_a_state_of_any_numbers_is_restored(tmp_path, monkeypatch, caplog, start):
    def steps(num_steps):
        work = Workdir(tmp_path, {})
        options = {"num_steps": num_steps, "chunk": 2, "work": work, "part": "fit"}
        try:
            state = {"a": start, "number": np.int32(0)}
            return train.run(counting_step, state, None, None, **options)["a"]
        finally:
            work._lock.close()

    assert np.all(steps(4) == 4)
    done = []
    chunk = train._chunk
    monkeypatch.setattr(train, "_chunk", lambda *given: done.append(given[1]) or chunk(*given))
    assert np.all(steps(6) == 6) and done == [4] and "damaged" not in caplog.text


def test_checkpoints_are_a_second_apart(tmp_path, monkeypatch):
    # The start, two chunks and a checkpoint, three chunks and a checkpoint.
    seconds = iter([0.0, 0.9, 1.1, 1.2, 1.9, 2.1, 2.3, 2.4])
    monkeypatch.setattr(train, "SAVE_SECONDS", 1)
    monkeypatch.setattr(train, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    run(tmp_path)
    steps = {path.name for path in (tmp_path / "checkpoints/fit/all").iterdir()}
    assert steps == {"8", "20"} and not list(seconds)


def test_done_ends_a_new_and_a_resumed_run_at_the_same_step(tmp_path):
    def done(state):
        return bool(state[2] > 1.2)

    _, state = run(tmp_path, done=done)
    assert done(state)
    work, again = run(tmp_path, done=done)
    np.testing.assert_array_equal(state, again)
    assert work.metrics.records()[-1]["step"] < 20


def diverging_step(state, index, data, settings):
    """Adds `data`, NaN or infinite, to the array named `settings` in step 6."""
    numbers = state | {"loss": jnp.float32(0)}
    numbers[settings] += jnp.where(index == 5, data, 0.0)
    return {name: numbers[name] for name in state}, {"loss": numbers["loss"]}


@pytest.mark.parametrize(
    ("name", "value", "chunk"),
    [("loss", np.nan, 4), ("parameters", np.inf, 4), ("moments", -np.inf, 8)],
)
def test_divergence_is_an_error_with_its_step_and_array(tmp_path, name, value, chunk):
    last = r"checkpoint: 4\)\." if chunk == 4 else r"checkpoint: none\)\."
    work = Workdir(tmp_path, {})
    for _ in range(2):  # the diverged chunk is not stored, so that the error is repeated
        with pytest.raises(UserError, match=f"fit diverged: step 6 made .*{name} NaN .*{last}$"):
            train.run(
                diverging_step,
                {"parameters": jnp.zeros(3), "moments": jnp.zeros(2), "count": jnp.int32(0)},
                jnp.float32(value),
                name,
                num_steps=20,
                chunk=chunk,
                work=work,
                part="fit",
            )
        assert [record["step"] for record in work.metrics.records()] == [1, 2, 3, 4, 5]
