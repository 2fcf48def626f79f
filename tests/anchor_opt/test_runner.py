import jax.numpy as jnp
import pytest

from anchor_opt import evaluation, runner
from anchor_opt.methods import METHODS
from anchor_opt.problem import partly_shared
from common.run.tasks import Case
from common.run.workdir import Workdir
from configs.anchor_opt import ablation, readings, retrieval, stitching
from configs.frontier import phase
from tests.samples import unit_rows


def test_methods_that_need_known_pairs_are_left_out_without_them():
    config = retrieval.get_config()
    config.methods = ("gt", "seed", "bootstrap")
    assert list(runner.grid(config).methods) == ["gt", "seed", "bootstrap"]
    config.num_pairs = 0
    assert list(runner.grid(config).methods) == ["gt", "bootstrap"]
    config = stitching.get_config()
    config.num_pairs = 0
    left = ["gt", "algorithm1_printed", "algorithm1", "bootstrap", "lstsq_truth"]
    assert list(runner.grid(config).methods) == left


def test_the_config_shows_the_defaults_of_the_bootstrap():
    values = runner.grid(retrieval.get_config()).settings
    assert values.bootstrap == type(values.bootstrap)() and values.start == type(values.start)()


@pytest.fixture(scope="module")
def problem():
    """Half of the rows of each space have a partner."""
    x = jnp.asarray(unit_rows(0, 45, 5))
    sizes = {"num_rows": 30, "num_anchors": 10, "num_pairs": 4}
    return partly_shared(x, x, **sizes, shared=0.5, random_seed=0)


@pytest.mark.parametrize(
    ("found", "failed", "expected"),
    [
        (1.0, False, (1, 0.5, 0, 0)),
        (1.0, True, (1, 0.5, 0, 1)),
        (0.0, False, (0, 0.5, 1, 0)),
        (0.0, True, (0, 0.5, 0, 0)),
    ],
)
def test_the_report_of_a_search_is_compared_with_what_it_found(problem, found, failed, expected):
    notes = {"corrected_agreement": 0.5, "failed": failed}
    measures = evaluation.search_scores(problem, notes, found, 5)
    names = ("relative_p_at_1", "gain", "false_success", "false_failure")
    assert [measures[name] for name in names] == pytest.approx(expected, abs=0.1)


def test_the_mrr_by_relative_vectors_is_1_with_the_true_anchors_alone(problem):
    anchors = problem.target[problem.truth[problem.anchors]]
    assert evaluation.relative_mrr(problem, anchors, 5) == pytest.approx(1)
    assert evaluation.relative_mrr(problem, anchors[::-1], 5) < 0.5


@pytest.mark.parametrize("method", ["seed", "gt"])
def test_only_methods_that_may_read_the_truth_are_given_it(method, problem, monkeypatch, tmp_path):
    seen = []
    original = METHODS[method]

    def watched(problem, run):
        seen.append(problem.truth)
        return original.run(problem, run)

    monkeypatch.setitem(METHODS, method, original._replace(run=watched))
    config = retrieval.get_config()
    config.methods, config.random_seeds = (method,), (0,)
    cases, grid = [Case("case", {}, lambda random_seed: problem)], runner.grid(config)
    work = Workdir(tmp_path, {})
    runner.run(cases, grid, lambda task, problem, result: [], work)
    assert (seen[0] is None) == (method == "seed")


@pytest.mark.parametrize("get_config", [ablation.get_config, readings.get_config])
def test_every_line_of_the_configs_can_be_set(get_config):
    config = get_config()
    names = [name for name, _ in config.vary]
    assert {point.name for point in runner.points_of(config)} == set(names)
    assert sum(point.base for point in runner.points_of(config)) == len(names)
    config.update(config.when_quick)
    assert list(runner.points_of(config))
    assert runner.grid(phase.get_config()).optimise == ("target",)
