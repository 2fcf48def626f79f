import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

from anchor_opt.problem import Problem, Run
from common.linear import Maps, unit
from common.run.workdir import Workdir
from frontier.experiments import halves
from frontier.methods import Settings
from frontier.methods.disjoint import run as run_disjoint
from isthmus.search import disjoint, self_learning

RNG = np.random.default_rng(0)
STEPS = "first_steps", "weighted_steps", "steps", "last_steps"
FEW = dict.fromkeys(STEPS, 5) | {"num_clusters": 5, "num_draws": 4}
X = np.arange(1, 31, dtype=np.float32)[:, None] * [1.0, 0.0] + [0.0, 1.0]


def centred(x, rows):
    """Unit rows of a space, without their mean over some rows, of unit norm again."""
    x = unit(x)
    return unit(x - x[rows].mean(axis=0))


def test_the_halves_and_the_third_set_have_no_item_in_common():
    samples = halves.split(X, 3 * X, 12, 0, 0)
    assert len(samples.problem.source) == len(samples.problem.target) == 12
    assert len(samples.test[0]) == len(samples.test[1]) == 6
    assert not len(samples.problem.anchors) and samples.problem.truth is None
    order = np.random.default_rng(0).permutation(30)
    rows = {"source": order[:12], "target": order[12:24], "test": order[24:]}
    assert len(np.unique(np.concatenate(list(rows.values())))) == 30
    for space, seen, given, other, test in (
        (X, "source", samples.problem.source, samples.other[1], samples.test[0]),
        (3 * X, "target", samples.problem.target, samples.other[0], samples.test[1]),
    ):
        expected = centred(space, rows[seen])
        unseen = rows["target" if seen == "source" else "source"]
        np.testing.assert_allclose(given, expected[rows[seen]], atol=1e-4)
        np.testing.assert_allclose(other, expected[unseen], atol=1e-4)
        np.testing.assert_allclose(test, expected[rows["test"]], atol=1e-4)


@pytest.mark.parametrize("shared, both", [(0.5, 6), (1.0, 12)])
def test_shared_items_are_in_both_halves_in_an_order_that_tells_nothing(shared, both):
    samples = halves.split(X, 3 * X, 12, 2, 0, shared=shared)
    problem = samples.problem
    # One number tells an item: the slope of its vector before it is centred.
    order = np.random.default_rng(0).permutation(30)
    source = order[:12]
    known = centred(X, source)
    np.testing.assert_allclose(problem.source, known[source], atol=1e-4)
    of_target = np.abs(np.asarray(samples.other[1])[:, None] - known).sum(axis=2).argmin(axis=1)
    assert of_target[:2].tolist() == source[:2].tolist()  # the known pairs
    assert len(np.intersect1d(of_target, source)) == both
    rest = of_target[2:]
    assert (rest == source[2:]).mean() < 0.5
    assert not np.isin(order[24:], of_target).any()


def test_maps_agree_on_rows_of_which_both_images_choose_each_other():
    rows = jnp.asarray(unit(RNG.normal(size=(50, 8))))
    first, second = (
        self_learning.initial_state(
            Maps(*(jnp.asarray(np.linalg.qr(RNG.normal(size=(8, 8)))[0]) for _ in range(2)))
        )
        for _ in range(2)
    )
    assert disjoint.agreement([first, first], rows) == 1
    assert disjoint.agreement([first, second], rows) < 0.2


def test_a_search_begins_in_few_axes_and_ends_in_all_with_two_groups_at_least():
    settings = disjoint.Settings()
    few, many = (disjoint.stages(settings, rows, 384) for rows in (4_000, 50_000))
    assert [stage.axes for stage in few] == [64] * 4 + [96, 128, 192, 256, None, None, None]
    assert [stage.group_rows for stage in few] == [500, 1_000, 2_000, *[1_000] * 6, 2_000, 2_000]
    assert [stage.reweight for stage in few] == [0.5] * 3 + [0.0] * 8
    assert [stage.group_rows for stage in many[-4:]] == [2_000, 4_000, 8_000, 8_000]
    assert {stage.step_rows for stage in many[:-1]} == {8_000} and many[-1].step_rows == 50_000
    narrow = disjoint.stages(settings, 300, 50)  # rows for one group alone
    assert [stage[:2] for stage in narrow] == [*[(None, 300)] * 3, (None, 150)]


def test_rows_are_turned_into_their_principal_axes_by_decreasing_variance(monkeypatch):
    x, y = (jnp.asarray(unit(RNG.normal(size=(60, d))) * np.arange(d, 0, -1)) for d in (6, 8))
    seen, data = [], self_learning.Data(x, y, *[np.arange(0)] * 2, jax.random.key(0))
    monkeypatch.setattr(disjoint.Learning, "begun", lambda self, _: seen.append(self.data) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        disjoint.search(data, disjoint.Settings(), tuple.__new__(disjoint.Stages))
    for rows, z in zip(seen[0][:2], (x, y), strict=True):
        np.testing.assert_allclose(rows @ rows.T, z @ z.T, atol=1e-3)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=0), np.linalg.svd(z)[1], rtol=1e-4)


def test_a_second_pass_begins_in_the_first_axes_of_the_map_with_other_draws():
    x, y = (jnp.asarray(unit(RNG.normal(size=(60, d)))) for d in (6, 8))
    begun, data = [], self_learning.Data(x, y, *[np.arange(0)] * 2, jax.random.key(0))

    def of_one_step(step, start, data, settings, *, stage, **options):
        begun.append((stage, np.asarray(start.state.maps.source @ start.state.maps.target.T)))
        return step(start, 0, data, settings)[0]

    values = disjoint.Settings(axes=(3,), group_rows=20, restarts=4)
    stages = disjoint.stages(values, 60, 6)
    learning = disjoint.Learning(data, values, of_one_step, stages)
    learning.extended(1, Maps(jnp.eye(3), jnp.eye(3)), 2)
    once = len(stages) - 2
    names = [f"self-learning-{draws}-{index}" for draws in (1, 5) for index in range(once)]
    assert [name for name, _ in begun] == names
    assert [len(product) for _, product in begun] == 2 * [stage.axes or 6 for stage in stages[1:-1]]
    np.testing.assert_allclose(begun[once][1] @ begun[once][1].T, np.eye(3), atol=1e-5)
    wider = begun[[stage.axes for stage in stages[1:]].index(None)][1]  # than the map before
    np.testing.assert_array_equal(wider, np.pad(wider[:3, :3], [(0, 3), (0, 5)]))


def test_the_maps_of_averaged_steps_are_added():
    rng = np.random.default_rng(0)
    x, y = (jnp.asarray(unit(rng.normal(size=(40, d)))) for d in (3, 4))
    none = np.arange(0)
    data = self_learning.Data(x, y, none, none, jax.random.key(0))
    settings = self_learning.GroupedSettings(groups=2, group_rows=20, reweight=0.0)
    state = self_learning.initial_state(Maps(jnp.eye(3), jnp.eye(4)[:, :3]))
    averaged, total = disjoint.Averaged(state, jnp.zeros((3, 4))), 0
    for index in range(3):
        averaged, _ = disjoint.averaged_step(averaged, index, data, settings)
        state, _ = self_learning.grouped_step(state, index, data, settings)
        total = total + state.maps.source @ state.maps.target.T
    np.testing.assert_allclose(averaged.total, total, atol=1e-5)
    np.testing.assert_allclose(averaged.state.maps.target, state.maps.target, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("related", [True, False])
def test_two_searches_agree_or_report_a_failure(tmp_path, related):
    x, y = (jnp.asarray(unit(RNG.normal(size=(200, 10)))) for _ in range(2))
    y = x @ jnp.asarray(np.linalg.qr(RNG.normal(size=(10, 10)))[0]) if related else y
    few = disjoint.Settings(**FEW, group_rows=50, last_group_rows=200, restarts=3, finalists=2)
    pairs = np.arange(50 if related else 0)
    problem = Problem(source=x, target=y, anchors=pairs, target_pairs=pairs)
    run = Run(Settings(disjoint=few), Workdir(tmp_path, {}), "p", 0, progress=False)
    notes = run_disjoint(problem, run).notes
    assert notes["failed"] != related
    assert notes["agreement"] > 0.9 if related else notes["agreement"] < 0.2


def test_with_a_large_share_the_map_is_that_of_the_known_pairs_alone(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(450, 8)).astype(np.float32)
    rotation = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    noisy = (x @ rotation + 0.3 * rng.normal(size=x.shape)).astype(np.float32)
    problem = halves.split(x, noisy, 200, 20, 0).problem
    known = [np.asarray(z)[rows] for z, rows in zip(problem[:2], problem.pairs, strict=True)]
    expected = orthogonal_procrustes(*known)[0]
    distances = []
    for share in (0.0, 1e5):
        sizes = {"group_rows": 100, "last_group_rows": 100, "restarts": 2, "finalists": 2}
        values = Settings(disjoint=disjoint.Settings(**FEW, **sizes, pair_share=share))
        part = Run(values, Workdir(tmp_path / str(share), {}), "p", 0, progress=False)
        maps = run_disjoint(problem, part).maps
        distances.append(np.linalg.norm(maps.source @ maps.target.T - expected))
    assert distances[0] > 0.5
    np.testing.assert_allclose(distances[1], 0, atol=1e-2)
