import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from anchor_opt.methods import METHODS, Run
from anchor_opt.problem import sample
from anchor_opt.relative import preprocess, unit_relative
from common.workdir import Workdir
from configs.anchor_opt.retrieval import get_config


@pytest.fixture(scope="module")
def problem():
    """A rotated copy with noise, of unequal dimension."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 20)) * np.linspace(2, 0.5, 20)
    rotation = np.linalg.qr(rng.normal(size=(30, 30)))[0][:20]
    y = x @ rotation + 0.02 * rng.normal(size=(500, 30))
    fixed, moving = preprocess(jnp.asarray(x)), preprocess(jnp.asarray(y))
    return sample(fixed, moving, num_anchors=40, num_seeds=10, random_seed=0)


def config_for_tests():
    config = get_config()
    config.algorithm1.steps = 20
    config.self_learning.patience = 3
    config.self_learning.steps = 40
    config.bootstrap.search_steps = 20
    config.bootstrap.search_words = 300
    config.start.words = (300,)
    config.start.epsilon = (0.02, 0.03)
    config.start.steps = 60
    return config


def run_method(name, problem, path, **bootstrap):
    config = config_for_tests()
    config.bootstrap.update(bootstrap)
    return METHODS[name](problem, Run(config, Workdir(path, {}), name, 0))


@pytest.mark.parametrize("name", METHODS)
def test_shapes_and_notes(name, problem, tmp_path):
    found = run_method(name, problem, tmp_path)
    assert found.anchors.shape == (10 if name == "seed" else 40, 30)
    assert np.isfinite(np.asarray(found.anchors)).all()
    json.dumps(found.notes)
    if found.coordinates:
        fixed, moving = found.coordinates
        assert len(fixed) == len(moving) == 500
        np.testing.assert_allclose(jnp.linalg.norm(moving, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("name", ["bootstrap", "self_learning", "iterated_procrustes"])
def test_the_correspondence_is_found(name, problem, tmp_path):
    found = run_method(name, problem, tmp_path)
    chosen = jnp.argmax(found.coordinates[0] @ found.coordinates[1].T, axis=1)
    assert (np.asarray(chosen) == problem.truth).mean() > 0.95
    if name == "bootstrap":
        assert found.notes["failed"] is False
        true = problem.moving[problem.truth[problem.anchors]]
        length = jnp.linalg.norm(found.anchors, axis=1)
        np.testing.assert_allclose(length, 1, atol=1e-5)
        # What anchors are off the span of the data (20 of 30 dimensions here) is free.
        fixed = unit_relative(problem.moving, true)
        assert float(jnp.sum(fixed * unit_relative(problem.moving, found.anchors), 1).mean()) > 0.99


def test_a_failure_is_said_after_its_restarts(problem, tmp_path):
    """Unrelated spaces: nothing to find, and the objective tells."""
    other = np.random.default_rng(9).normal(size=(500, 30))
    unrelated = problem._replace(moving=preprocess(jnp.asarray(other)))
    found = run_method("bootstrap", unrelated, tmp_path, anneal_words=(300, 500), anneal_steps=10)
    assert found.notes["failed"] is True
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").open()]
    searches = {}
    for record in records:
        if "keep" in record and "/search-" in record["part"]:
            name = record["part"].split("/search-")[1]
            searches.setdefault(name, []).append(record["objective"])
    names = list(searches)
    assert names[:3] == ["seeds", "anneal-300", "anneal-500"]
    assert names[3].startswith("gromov-300")
    none = unrelated._replace(seeds=problem.seeds[:0])
    assert run_method("bootstrap", none, tmp_path / "none").notes["failed"] is True


def test_seeds_that_are_all_wrong_are_overruled_by_the_geometry(problem, tmp_path):
    wrong = problem._replace(seeds=(problem.seeds + 7) % 500)
    found = run_method("bootstrap", wrong, tmp_path)
    assert found.notes["failed"] is False and found.notes["start"].startswith("gromov-")
    assert found.notes["disbelieved"] == list(range(10))


def test_the_best_of_two_successes_is_taken(problem, tmp_path):
    found = run_method("bootstrap", problem, tmp_path, successes=2, anneal_steps=20)
    searches = {path.name for path in (tmp_path / "checkpoints").rglob("search-*")}
    assert searches == {"search-seeds", "search-anneal-500"}
    assert found.notes["failed"] is False and found.notes["start"] in ("seeds", "anneal-500")


def test_fewer_dimensions_than_seeds(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 8)) * np.linspace(2, 0.5, 8)
    spaces = [preprocess(jnp.asarray(y)) for y in (x, x @ np.linalg.qr(rng.normal(size=(8, 8)))[0])]
    few = sample(*spaces, num_anchors=40, num_seeds=10, random_seed=0)
    found = run_method("bootstrap", few, tmp_path)
    assert found.notes["failed"] is False and found.notes["start"] == "seeds"


def test_no_seeds_at_all(problem, tmp_path):
    none = problem._replace(seeds=problem.seeds[:0])
    found = run_method("bootstrap", none, tmp_path)
    assert found.notes["failed"] is False and found.notes["start"].startswith("gromov-")
    chosen = jnp.argmax(found.coordinates[0] @ found.coordinates[1].T, axis=1)
    assert (np.asarray(chosen) == problem.truth).mean() > 0.95


def test_wrong_seeds_are_survived_and_named(problem, tmp_path):
    seeds = problem.seeds.copy()
    seeds[[2, 5, 6]] = (seeds[[2, 5, 6]] + 7) % 500
    found = run_method("bootstrap", problem._replace(seeds=seeds), tmp_path)
    assert found.notes["failed"] is False
    assert found.notes["disbelieved"] == [2, 5, 6]


def test_nothing_but_gt_and_oracle_looks_at_the_truth(problem, tmp_path):
    """Any other method gives the same anchors when the truth is scrambled."""
    rng = np.random.default_rng(3)
    for name in sorted(set(METHODS) - {"gt", "oracle"}):
        truth = problem.truth.copy()
        # Who is frequent may be known, which word is which not: scramble within those groups.
        for group in (problem.truth[:300], problem.truth[300:]):
            others = np.setdiff1d(group, problem.seeds)
            places = np.flatnonzero(np.isin(truth, others))
            truth[places] = rng.permutation(truth[places])
        scrambled = problem._replace(truth=truth)
        found = run_method(name, problem, tmp_path / name)
        again = run_method(name, scrambled, tmp_path / f"{name}-scrambled")
        np.testing.assert_array_equal(found.anchors, again.anchors)


BOOTSTRAP = """
import jax, jax.numpy as jnp, numpy as np
import common
from anchor_opt.methods import METHODS, Run
from anchor_opt.problem import sample
from anchor_opt.relative import preprocess
from common.workdir import Workdir
from configs.anchor_opt.retrieval import get_config
rng = np.random.default_rng(0)
x = rng.normal(size=(500, 20)) * np.linspace(2, 0.5, 20)
y = x @ np.linalg.qr(rng.normal(size=(30, 30)))[0][:20] + 0.02 * rng.normal(size=(500, 30))
spaces = [preprocess(jnp.asarray(z)) for z in (x, y)]
problem = sample(*spaces, num_anchors=40, num_seeds=10, random_seed=0)
config = get_config()
config.bootstrap.search_words, config.bootstrap.search_steps = 300, 20
found = METHODS["bootstrap"](problem, Run(config, Workdir(path, {}), "bootstrap", 0))
"""


def test_eight_devices_find_the_anchors_of_one(tmp_path):
    # LLVM's optimisation is a third of what compiling for eight devices takes.
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=8"
    flags += " --xla_backend_optimization_level=0"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    kept = str(tmp_path / "anchors.npy")
    code = f"path = {str(tmp_path / 'eight')!r}\n{BOOTSTRAP}\nassert jax.device_count() == 8\n"
    code += f"np.save({kept!r}, found.anchors)"
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    names = {"path": str(tmp_path / "one")}
    exec(BOOTSTRAP, names)
    assert jax.device_count() == 1 and process.wait() == 0
    assert names["found"].notes["start"] == "seeds"
    np.testing.assert_allclose(names["found"].anchors, np.load(kept), atol=2e-3)
