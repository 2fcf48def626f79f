import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchor_opt import evaluation, runner
from anchor_opt.methods import METHODS
from anchor_opt.problem import partly_shared
from common.csls import matches as csls_matches
from common.linear import preprocess
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from configs.anchor_opt.overlap import get_config

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
