import json

import jax.numpy as jnp
import numpy as np
import pytest
from configs.anchor_opt.overlap import get_config
from hypothesis import given
from hypothesis import strategies as st

from anchor_opt import evaluation, runner
from anchor_opt.experiments import overlap
from anchor_opt.methods import METHODS
from anchor_opt.problem import partly_shared
from common.csls import matches as csls_matches
from common.data.packages import cache_dir
from common.errors import UserError
from common.linear import preprocess
from common.run.results import Row, select
from common.run.settings import apply_quick
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from tests.samples import rotated_words

RNG = np.random.default_rng(0)
X = np.asarray(preprocess(jnp.asarray(RNG.normal(size=(60, 5)))))


def draw(shared=0.6, random_seed=0, num_pairs=4):
    sizes = {"num_rows": 30, "num_anchors": 10, "num_pairs": num_pairs}
    return partly_shared(X, X, **sizes, shared=shared, random_seed=random_seed)


@given(st.sampled_from([0.5, 0.6, 0.9, 1.0]), st.integers(0, 30))
def test_the_drawn_rows_share_the_given_fraction(shared, random_seed):
    problem = draw(shared, random_seed)
    rows = np.flatnonzero(problem.truth >= 0)
    assert len(rows) == round(shared * 30)
    np.testing.assert_array_equal(problem.source[rows], problem.target[problem.truth[rows]])
    distinct = np.unique(np.concatenate([problem.source, problem.target]), axis=0)
    assert len(distinct) == 60 - len(rows)  # the other rows have no partner
    assert len(set(problem.anchors)) == 10 and (problem.truth[problem.anchors] >= 0).all()
    np.testing.assert_array_equal(problem.truth[problem.source_pairs], problem.target_pairs)
    assert problem.ranks is None


def test_the_report_of_a_search_is_compared_with_what_it_found():
    problem = draw()
    right = problem.source, problem.target
    wrong = problem.source, np.roll(problem.target, 7, axis=0)
    notes = {"corrected_agreement": 0.5}

    def report(coordinates, failed):
        to_target = np.asarray(csls_matches(*coordinates, neighbours=5).to_target)
        shared = problem.truth >= 0
        right = np.mean(to_target[shared] == problem.truth[shared])
        task = Task(Case("case", {"experiment": "e", "dataset": "d"}, draw), "bootstrap", 0)
        rows = evaluation.search_rows(task, problem, notes | {"failed": failed}, right, 5)
        return {row.metric: row.mean for row in rows}

    for coordinates, failed, expected in [
        (right, False, (1, 0.5, 0, 0)),
        (right, True, (1, 0.5, 0, 1)),
        (wrong, False, (0, 0.5, 1, 0)),
        (wrong, True, (0, 0.5, 0, 0)),
    ]:
        names = ("relative_p_at_1", "gain", "false_success", "false_failure")
        measures = report(coordinates, failed)
        assert [measures[name] for name in names] == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("method", ["seed", "gt"])
def test_only_methods_that_may_read_the_truth_are_given_it(method, monkeypatch, tmp_path):
    seen = []
    original = METHODS[method]

    def watched(problem, run):
        seen.append(problem.truth)
        return original(problem, run)

    monkeypatch.setitem(METHODS, method, watched)
    config = get_config()
    config.methods, config.random_seeds = (method,), (0,)
    cases, grid = [Case("case", {}, lambda random_seed: draw())], runner.grid(config)
    work = Workdir(tmp_path, {})
    runner.run(cases, grid, lambda task, problem, result: [], work, hide_truth=True)
    assert (seen[0] is None) == (method == "seed")


@pytest.mark.network
@pytest.mark.slow
def test_the_experiment_on_real_words(tmp_path, monkeypatch):
    config = get_config()
    config.quick = True
    config = apply_quick(config)
    config.num_rows, config.num_anchors, config.num_pairs = 400, 60, 60
    config.bootstrap.search_steps = 20
    monkeypatch.chdir(tmp_path)
    rotated_words(tmp_path / "rotated.npz")
    config.pairs = ("glove:rotated.npz",)
    config.noisy_space = "glove"
    config.methods = ("gt", "bootstrap")
    config.known_pairs = (60,)
    table = overlap.run(config, Workdir(tmp_path / "run", {}), cache_dir())
    assert "False success" in table and "MRR over shared" in table
    assert "P@1 of the method's own map over known pairs" in table
    rows = [Row(**row) for row in json.loads((tmp_path / "run/results.json").read_text())]
    for row in select(rows, metric="mrr", method="bootstrap"):
        assert row.mean > 0.5
    searches = select(rows, metric="false_success")
    assert len(searches) == 3 and all(row.mean == 0 for row in searches)
    for name in ("mrr.png", "detector.png"):
        assert (tmp_path / "run" / name).stat().st_size > 0


def test_a_shared_part_larger_than_the_whole_is_refused_before_anything_is_read(tmp_path):
    config = get_config()
    config.shared = (0.5, 1.5)
    with pytest.raises(UserError, match=r"shared is 1\.5: choose a number from 0 to 1"):
        overlap.run(config, Workdir(tmp_path, {}), tmp_path)
