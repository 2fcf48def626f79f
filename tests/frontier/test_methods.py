import dataclasses
import functools
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from anchor_opt import runner
from anchor_opt.problem import Run, sample
from anchor_opt.relative import unit_relative
from common.linear import preprocess
from common.run.workdir import Workdir
from configs.anchor_opt.retrieval import get_config
from frontier.methods import METHODS, Settings, spectral
from frontier.methods import published as unpaired
from isthmus.search import disjoint, goat
from tests import commands

CHANGES = {
    "algorithm1.steps": 50,
    "algorithm1.sphere_from": 25,
    "bootstrap.search_steps": 20,
    "bootstrap.search_rows": 300,
    "bootstrap.group_rows": 100,
    "start.num_draws": 10,
    "start.num_restarts": 20,
}
FEWER_STEPS = {
    "disjoint": disjoint.Settings(
        group_rows=100, num_clusters=10, num_draws=8, first_steps=4, steps=4, last_steps=2
    ),
    "mini_vec2vec": unpaired.MiniVec2Vec(num_draws=4, num_restarts=4, steps=4, last_clusters=50),
    "rosetta": unpaired.Rosetta(num_draws=4, num_restarts=4, steps=4),
    "goat": goat.Settings(steps=2, iterations=20),
    "spectral": spectral.Settings(eigenvectors=4, components=3),
}


@pytest.fixture(scope="module")
def problem():
    return rotated_copy(20, 30)


def rotated_copy(d_source, d_target):
    """A rotated copy of a space with noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, d_source)) * np.linspace(2, 0.5, d_source)
    rotation = np.linalg.qr(rng.normal(size=(d_target, d_target)))[0][:d_source]
    y = x @ rotation + 0.02 * rng.normal(size=(500, d_target))
    spaces = [preprocess(jnp.asarray(z)) for z in (x, y)]
    # Two similar orders by frequency, whose first 300 rows are not all the same items.
    ranks = np.arange(500), np.argsort(np.argsort(np.arange(500) + rng.normal(0, 10, 500)))
    return sample(*spaces, num_anchors=40, num_pairs=15, random_seed=0, ranks=ranks)


def run_method(name, problem, path, **changes):
    config = get_config()
    config.update_from_flattened_dict(CHANGES)
    values = runner.grid(config, METHODS, Settings).settings
    values = dataclasses.replace(
        values, bootstrap=dataclasses.replace(values.bootstrap, **changes), **FEWER_STEPS
    )
    run = Run(settings=values, work=Workdir(path, {}), part=name, random_seed=0)
    return METHODS[name].run(problem, run)


@pytest.fixture(scope="module")
def solved(problem, tmp_path_factory):
    """A method's result, computed once; the true pairing is known to references alone."""

    @functools.cache
    def solved(name):
        truth = problem.truth if METHODS[name].reads_truth else None
        return run_method(name, problem._replace(truth=truth), tmp_path_factory.mktemp(name))

    return solved


def fraction_right(result, problem):
    source, target = result.coordinates(problem.source, problem.target)
    nearest = jnp.argmax(source @ target.T, axis=1)
    return (np.asarray(nearest) == problem.truth).mean()


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_method_gives_finite_anchors_and_unit_coordinates(name, problem, solved):
    result = solved(name)
    assert result.anchors.shape == ({"seed": 15, "spectral": 0}.get(name, 40), 30)
    assert np.isfinite(np.asarray(result.anchors)).all()
    json.dumps(result.notes)
    if result.maps is not None or result.placed is not None:
        source, target = result.coordinates(problem.source, problem.target)
        assert len(source) == len(target) == 500
        np.testing.assert_allclose(jnp.linalg.norm(target, axis=1), 1, atol=1e-5)
    if name in ("bootstrap", "iterated_procrustes"):
        assert fraction_right(result, problem) > 0.95


@pytest.mark.slow
def test_the_bootstrap_finds_the_anchors(problem, solved):
    result = solved("bootstrap")
    assert result.notes["failed"] is False
    np.testing.assert_allclose(jnp.linalg.norm(result.anchors, axis=1), 1, atol=1e-5)
    # The data span 20 of the 30 dimensions: relative rows are compared, since an anchor's part off
    # that span is arbitrary.
    true = problem.target[problem.truth[problem.anchors]]
    relative = (unit_relative(problem.target, anchors) for anchors in (true, result.anchors))
    assert float(jnp.sum(jnp.multiply(*relative), axis=1).mean()) > 0.99


def last_steps(workdir):
    """Name of each stage of a run's self-learning -> the last step that it logged."""
    records = [json.loads(line) for line in (workdir / "metrics.jsonl").open()]
    return {r["part"].split("/")[1]: r["step"] for r in records if "objective" in r}


@pytest.mark.slow
def test_failure_on_unrelated_spaces_is_reported_after_all_initializations(problem, tmp_path):
    other = np.random.default_rng(9).normal(size=(500, 30))
    unrelated = problem._replace(target=preprocess(jnp.asarray(other)))
    result = run_method("bootstrap", unrelated, tmp_path, search_steps=8, group_steps=10)
    assert result.notes["failed"] is True
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").open()]
    parts = dict.fromkeys(r["part"] for r in records if "mutual" in r)
    names = [part.split("/self-learning-")[1] for part in parts if "/self-learning-" in part]
    tried = [name.removesuffix("-geometry-0.5") for name in names if not name.endswith("-1")]
    assert tried[:4] == ["pairs", "pairs", "goat", "profiles"]
    assert all(name.startswith("clusters-") for name in tried[4:])
    assert names[1 + len(tried[1:]) :] == [f"{name}-geometry-1" for name in tried[1:]]
    none = unrelated._replace(target_pairs=problem.target_pairs[:0])
    few = {"search_steps": 8, "group_steps": 10, "group_reweights": (1.0,)}
    result = run_method("bootstrap", none, tmp_path / "none", **few)
    assert result.notes["failed"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_pairs", "wrong", "initialization"),
    [(15, [2, 5, 6], ""), (15, list(range(15)), "-geometry-0.5"), (0, [], "-geometry-0.5")],
)
def test_wrong_pairs_are_rejected_in_favour_of_the_geometry(
    num_pairs, wrong, initialization, problem, tmp_path
):
    pairs = problem.target_pairs[:num_pairs].copy()
    pairs[wrong] = (pairs[wrong] + 7) % 500
    ranks = problem.ranks if num_pairs else None  # then the first stage takes all rows
    given = problem._replace(target_pairs=pairs, ranks=ranks)
    # With groups of 100 rows rounding decides whether the geometry is found.
    result = run_method("bootstrap", given, tmp_path, group_rows=200)
    assert result.notes["failed"] is False and fraction_right(result, problem) > 0.95
    assert result.notes["initialization"].endswith(initialization)
    assert result.notes["rejected_pairs"] == wrong


def test_the_chance_baseline_takes_as_many_steps(problem, tmp_path):
    result = run_method("bootstrap", problem, tmp_path, search_steps=12, patience=12)
    last = last_steps(tmp_path)
    assert last["chance-baseline-0"] == last["self-learning-pairs"] == 12
    assert result.notes["corrected_agreement"] > 0.5


@pytest.mark.slow
def test_self_learning_that_is_not_sure_is_judged_by_its_last_fit(tmp_path):
    """Known pairs are more than dimensions."""
    few = {"group_reweights": (0.5,), "group_steps": 5, "search_steps": 12, "patience": 2}
    few |= {"sure_gain": 1.1}  # no agreement is so large
    result = run_method("bootstrap", rotated_copy(8, 8), tmp_path, **few)
    last = last_steps(tmp_path)
    starts = [stage for stage in last if stage.startswith("self-learning-")]
    # No search is sure, so that one from wrong pairs suffices; the last fit is a success beside as
    # many as there were initializations.
    refined = [f"refine-chance-baseline-{number}" for number in range(len(starts))]
    assert len(starts) > 1 and [stage for stage in last if "refine-chance" in stage] == refined
    assert result.notes["failed"] is False and result.notes["agreement"] > 0.95
    chance = result.notes["chance_agreement"]
    expected = (result.notes["agreement"] - chance) / (1 - chance)
    assert np.isclose(result.notes["corrected_agreement"], expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in METHODS if not METHODS[name].reads_truth])
def test_methods_do_not_read_the_true_pairing(name, problem, solved, tmp_path):
    """With the truth removed or permuted the results are equal to the last bit."""
    permuted = problem._replace(truth=np.random.default_rng(3).permutation(problem.truth))
    pairs = [(solved(name), run_method(name, permuted, tmp_path / "ranked"))]
    if name == "bootstrap":  # it alone reads the ranks
        unranked = (p._replace(ranks=None) for p in (permuted, problem._replace(truth=None)))
        pairs.append([run_method(name, p, tmp_path / f"{p.truth is None}") for p in unranked])
    for result, other in pairs:
        assert other.notes == result.notes
        jax.tree.map(np.testing.assert_array_equal, other[:2], result[:2])


@pytest.mark.slow
def test_eight_devices_find_the_anchors_of_one(problem, tmp_path):
    code = (
        "import jax, pathlib, runpy, numpy as np\n"
        "assert jax.device_count() == 8\n"
        f"tests, path = runpy.run_path({__file__!r}), pathlib.Path({str(tmp_path)!r})\n"
        "result = tests['run_method']('bootstrap', tests['rotated_copy'](20, 30), path / 'eight')\n"
        "np.save(path / 'anchors.npy', result.anchors)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env=commands.on_devices(8))
    result = run_method("bootstrap", problem, tmp_path / "one")
    assert jax.device_count() == 1 and process.wait() == 0
    assert result.notes["initialization"] == "pairs"
    np.testing.assert_allclose(result.anchors, np.load(tmp_path / "anchors.npy"), atol=2e-3)
