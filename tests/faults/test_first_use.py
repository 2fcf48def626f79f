"""Faults that public bug reports and first use have shown, each as its whole kind (README.md)."""

import os
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import ot as pot
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isthmus
from common import alignment, metrics, ot, progress
from common.aligner import ARRAYS
from common.data.readers import vector_files
from common.encoders import bert
from common.errors import UserError, check_count
from common.ot import dense
from common.run import launch, results, tasks
from common.run.figures import Figure, png
from common.run.results import Row
from common.run.workdir import Workdir
from common.spaces import paired_spaces
from isthmus.align import files
from lpl import loss, training
from tests import commands
from tests.samples import normal
from wasserstein_embed import cloud, metric_embed
from wasserstein_embed.cloud import Clouds

X, Y = normal(0, 60, 6), normal(1, 60, 4)
NONE = X[:0]
pair_of_spaces = partial(paired_spaces.load, "a", "b", cache=Path(os.devnull))
EMPTY = np.zeros(0, np.int32)
TRANSPORT = cloud.Distance(
    ground="euclidean", p=1, epsilon=1.0, iterations=2, value="transport_cost", implicit_diff=False
)


def refuses(sentence):
    return pytest.raises(UserError, match=sentence)


@pytest.mark.slow
@pytest.mark.parametrize("value", ot.VALUES)
def test_a_problem_of_a_batch_does_not_depend_on_the_costs_of_others(value):
    cost = np.abs(normal(0, 36, 5)).reshape(3, 12, 5)[:, :6]
    changed = cost.copy()
    changed[1, 0, 0], changed[2, [0, 2], [0, 3]] = 1e8, np.inf
    options = {"epsilon": 0.1, "iterations": 500, "value": value}
    total = jax.value_and_grad(lambda c: ot.solve_batch(c, **options).value.sum())
    solved = ot.solve_batch(changed, **options).value
    np.testing.assert_allclose(solved[0], ot.solve_batch(cost, **options).value[0], rtol=1e-5)
    np.testing.assert_allclose(total(changed)[1][0], total(cost)[1][0], atol=1e-5)
    assert np.isfinite(total(changed)[1]).all() and total(changed)[1][2, 0, 0] == 0
    if value == "transport_cost":
        limits = {"numItermax": 2_000, "stopThr": 0, "warn": False}
        plan = pot.sinkhorn([], [], changed[2].astype(float), 0.1, **limits)
        expected = np.sum(plan * np.where(np.isinf(changed[2]), 0, changed[2]))
        np.testing.assert_allclose(solved[2], expected, rtol=1e-4)


@pytest.mark.parametrize("log_domain", [True, False])
def test_points_without_weight_leave_gradients_finite(log_domain):
    a, b = jnp.array([0.5, 0.5, 0]), jnp.array([0.6, 0.4, 0, 0])

    def cost(c):
        return dense.transport(c, a, b, epsilon=0.5, log_domain=log_domain).primal_cost

    assert np.isfinite(jax.grad(cost)(jnp.abs(X[:3, :4]))).all()


def test_what_a_grid_names_twice_counts_once():
    case = tasks.Case("a", {}, lambda seed: None)
    todo = tasks.grid([case, case], ["m", "m"], [0, 0, 1])
    assert [task.random_seed for task in todo] == [0, 1]
    row = {"experiment": "e", "dataset": "d", "method": "m", "metric": "f1"}
    rows = [Row(**row, mean=m, random_seed=s) for m, s in ((1, 0), (1, 0), (2, 1), (2, 1), (2, 1))]
    (mean,) = results.averaged(rows)
    assert (mean.mean, mean.num_runs) == (1.5, 2)


class Pairs(NamedTuple):
    key: Any
    num_pairs: int


class Descent(training.Training):
    def objective(self, parameters, data, rows):
        return jnp.sum(parameters**2), {}

    def optimiser(self, schedule):
        return optax.adam(schedule)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 7, 25, 30])
def test_every_loop_makes_as_many_steps_as_asked_for(count):
    both = metric_embed.Settings(
        geometry="euclidean", shape=(2,), init_range=(0, 1), steps=count, learning_rate=0.1
    )
    data = metric_embed.Data(jnp.array([0]), jnp.array([1]), jnp.ones(1))
    state = metric_embed.init(both, 2, jax.random.split(jax.random.key(0), 1))
    for index in range(count // both.updates_per_step):
        state, _ = metric_embed.step(state, jnp.array(index), data, both)
    assert optax.tree_utils.tree_get(state.training.optimiser, "count") == count
    chosen, pairs = Descent(learning_rate=0.1, batch=1, updates=count), Pairs(jax.random.key(0), 1)
    state = training.init_state(jnp.ones(1), chosen)
    for index in range(chosen.steps):
        state, _ = training.step(state, jnp.array(index), pairs, chosen)
    assert state.optimiser[0].count == count


def test_scales_and_offsets_change_no_neighbour_and_no_similarity():
    for scale in (1e-30, 1e-12, 1e7, 1e30):
        np.testing.assert_allclose(metrics.linear_cka(X * np.float32(scale), X), 1, atol=1e-5)
    rows, moved = np.arange(60), (X + 1_000).astype(np.float32)
    exact = np.square(moved[:, None].astype(float) - moved).sum(2) + np.diag(np.full(60, np.inf))
    expected = np.argsort(exact, axis=1, kind="stable")[:, :5]
    assert np.mean(np.asarray(loss.neighbours(moved, rows, 5)) == expected) > 0.99


@pytest.mark.parametrize(
    "steps", [(), ("unit",), ("unit", "unit"), ("center",), alignment.NORMALISE]
)
def test_files_of_maps_have_one_form(steps, tmp_path):
    aligner = alignment.fit("ridge", X, Y, normalise=steps)
    aligner.save(tmp_path / "map.npz")
    fields = np.load(tmp_path / "map.npz")
    assert [fields[name].shape for name in ARRAYS] == [(6, 4), (1, 6), (1, 4)]
    np.testing.assert_allclose(alignment.load(tmp_path).apply(X), aligner.apply(X), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: isthmus.fit("ridge", X, Y, penalty=-1.0), "penalty is -1.0: choose a finite"),
        (lambda: isthmus.fit("whitened_procrustes", X, Y, penalty=float("nan")), "penalty is nan"),
        (lambda: isthmus.fit("ridge", X, Y, centre_rows=-3), "centre_rows is -3"),
        (lambda: loss.lle_weights(X, EMPTY, EMPTY[:, None], -1.0), "regularisation is -1.0"),
        (lambda: isthmus.discover(X, Y, rows=-5), "rows is -5"),
        (lambda: isthmus.discover(X, Y, random_seed=-1), "random_seed is -1"),
        (lambda: check_count("seed", 0.5, least=0), "seed is 0.5: choose a whole number"),
        (lambda: tasks.grid([tasks.Case("a", {}, id)], "m", [-1]), "seed is -1: choose at least 0"),
        (lambda: isthmus.top_k(X, NONE, 3), "k is 3 of 0 keys: give at least 1 keys"),
        (lambda: isthmus.top_k(X[0], X, 3), r"queries have shape \[6\] and the keys \[60, 6\]"),
        (lambda: isthmus.top_k(X, Y, 3), r"shape \[60, 6\] and the keys \[60, 4\]: give rows"),
        (lambda: isthmus.top_k([[1], [1, 2]], X, 1), "no arrays of numbers: give rows"),
        (lambda: loss.neighbours(NONE, EMPTY, 3), "k is 3 of 0 other rows"),
        (lambda: isthmus.encode("one text"), "There is 'one text' where texts are expected"),
        (lambda: bert.as_list(["a", None]), "There is None where texts are expected"),
        (lambda: pair_of_spaces(num_words=-5), "num_words is -5: choose at least"),
        (lambda: pair_of_spaces(num_words=0), "num_words is 0: choose at least"),
        (lambda: pair_of_spaces(num_words=None, drop_first=-7), "drop_first is -7: choose at"),
    ],
)  # fmt: skip
def test_what_cannot_be_right_is_one_sentence(call, sentence):
    with refuses(sentence):
        call()


def test_of_nothing_there_is_nothing():
    assert isthmus.top_k(NONE, X, 3).index.shape == (0, 3)
    for rows, k in ((EMPTY, 3), (EMPTY, 0), (np.arange(2), 0)):
        index = np.zeros((len(rows), k), int)
        assert loss.lle_weights(X, rows, index).shape == index.shape
    assert loss.lle_weights(NONE, EMPTY, np.zeros((0, 3), int)).shape == (0, 3)
    assert loss.neighbours(X, EMPTY, 3).shape == (0, 3)
    for distance in (None, TRANSPORT):
        pairs = jnp.asarray(EMPTY), jnp.asarray(EMPTY)
        of_none = cloud.pair_distances(Clouds(jnp.asarray(X)[:, None]), *pairs, distance)
        assert of_none.shape == (0,)
    assert np.isnan(metrics.foscttm(NONE, NONE)) and np.isnan(metrics.linear_cka(NONE, NONE))
    assert isthmus.fit("ridge", X, Y).apply(NONE).shape == (0, 4)


@pytest.mark.parametrize("stream", [None, SimpleNamespace()])
def test_progress_needs_no_stream(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream)
    assert list(progress.progress_bar(range(3))) == [0, 1, 2]


def test_figures_need_no_latex_and_end_no_run():
    figure = Figure()
    figure.suptitle("title").set_usetex(True)
    assert png(figure).startswith(b"\x89PNG")
    figure.suptitle("$\\frac$")  # no formula
    assert png(figure).startswith(b"\x89PNG")


def test_a_workdir_in_which_nothing_was_computed_is_free(tmp_path):
    for name in ("mse_llp", "mse_lpl"):
        work = Workdir(tmp_path, {"methods": name})
        work._lock.close()
    work.part("a", lambda: 1)
    with refuses("methods was mse_lpl, is now b"):
        Workdir(tmp_path, {"methods": "b"})


@pytest.mark.parametrize(
    "words",
    [("--workdir", "w x"), ("--config.a", "-0.01"), ("--config.text=a b", "--noconfig.quick")],
)
def test_the_command_of_a_run_can_be_given_again(words, monkeypatch, tmp_path):
    known = {"workdir": False, "config": False, "config.a": False, "config.text": False}
    known = {name: SimpleNamespace(boolean=boolean) for name, boolean in known.items()}
    monkeypatch.setattr(launch.flags, "FLAGS", known)
    (tmp_path / "mine.py").write_text("")
    monkeypatch.setattr(sys, "argv", ["x", "--config", f"{tmp_path}/mine.py:small", *words])
    again = shlex.split(launch._command(tmp_path, "lpl"))
    joined = [words[0] if len(words[0].split("=")) > 1 else "=".join(words), *words[1:]]
    expected = [word for word in joined if word.startswith("--") and "workdir" not in word]
    assert again == ["python", "-m", "lpl.main", "--config=mine.py:small", *expected]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A map, and folders of parts of a table, some of which are empty or in partitions."""
    monkeypatch.chdir(tmp_path)
    alignment.fit("procrustes", X, Y, names=("old", "new")).save("map.npz")
    for place, rows in {"a/0": X[:40], "a/1": NONE, "b/k=x/0": X[:40], "b/k=y/0": X[40:]}.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        lists = pa.array(rows.tolist(), pa.list_(pa.float32()))
        pq.write_table(pa.table({"id": range(len(rows)), "embedding": lists}), f"{place}.parquet")
    return tmp_path


def test_parts_may_be_empty_or_in_partitions(store, monkeypatch):
    for given, out in (("a/*.parquet", "mapped"), ("a", "a.parquet"), ("b", "b.parquet")):
        assert not commands.run(monkeypatch, "isthmus.apply", given, "--map=.", f"--out={out}")
    assert len(pq.read_table("mapped/0.parquet")) == 40 and not os.path.exists("mapped/1.parquet")
    assert pq.read_table("b.parquet")["k"].to_pylist() == ["x"] * 40 + ["y"] * 20


def test_vectors_of_the_other_side_are_named(store, monkeypatch, capfd):
    np.save("q.npy", Y)
    given = "isthmus.apply", "q.npy", "--map=map.npz", "--out=o.npy"
    assert "which have 4, --side=target is right" in commands.refused(monkeypatch, capfd, *given)


def test_invalid_vectors_are_named_all_at_once_or_left_out(tmp_path, caplog):
    vectors = X.copy()
    vectors[[3, 50]], vectors[7, 0] = 0, np.nan
    np.save(tmp_path / "a.npy", vectors)
    with refuses("The vectors of '3', '7', '50' in .* only zeros"):
        vector_files.read(tmp_path / "a.npy")
    read = vector_files.read(tmp_path / "a.npy", form=vector_files.Form(invalid="drop"))
    assert isinstance(read.words, vector_files.RowNumbers)  # no ids
    assert read.words == [str(i) for i in range(60) if i not in (3, 7, 50)]
    vectors = X.copy()
    vectors[:12] = vectors[0]
    np.save(tmp_path / "a.npy", vectors)
    vector_files.read(tmp_path / "a.npy")
    assert "12 of 60 rows" in caplog.text


def test_printed_commands_hold_what_a_file_needs(tmp_path):
    form = vector_files.Form(vector_column="my vectors")
    (first, _) = files.apply_commands(tmp_path / "a b.feather", tmp_path / "map.npz", form)
    assert shlex.split(first)[2:] == [
        f"{tmp_path}/a b.feather", f"--map={tmp_path}/map.npz", "--out=mapped.parquet",
        "--vector_column=my vectors",
    ]  # fmt: skip


@pytest.mark.slow
def test_few_rows_are_mapped_in_a_forked_process_and_without_a_new_program():
    script = (
        "import os, signal, numpy as np, isthmus\n"
        "x = np.random.default_rng(0).normal(size=(50, 6)).astype('f')\n"
        "aligner = isthmus.fit('ridge', x, x)\n"
        "if os.fork(): os.wait()\n"
        "else: signal.alarm(60); print(aligner.apply(x[:7]).shape, flush=True); os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "(7, 6)\n"
