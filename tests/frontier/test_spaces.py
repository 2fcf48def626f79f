import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.linear import preprocess
from common.run.results import Row, select
from common.run.tasks import Case, Task
from frontier.experiments import spaces


def measured(source, target, random_seed) -> list[Row]:
    order = np.random.default_rng(random_seed).permutation(len(source))
    fields = {"experiment": "spaces", "dataset": "a -> b"}
    case = Case("a-b", fields, lambda random_seed: spaces.Problem(source, target, order))
    task = Task(case, "truth", random_seed)
    return spaces.measure_pair(task, num_anchors=20, k=10, first_seed=0)[0]


def test_a_rotation_is_found_by_every_measure():
    rng = np.random.default_rng(0)
    x = preprocess(jnp.asarray(rng.normal(size=(200, 8)), jnp.float32))
    y = x @ jnp.asarray(np.linalg.qr(rng.normal(size=(8, 8)))[0], jnp.float32)
    for random_seed in (0, 1):
        for row in measured(x, y, random_seed):
            assert row.mean == pytest.approx(1, abs=1e-3), row


def test_only_calibrated_similarities_of_unrelated_spaces_of_many_dimensions_are_zero():
    x, y = (jax.random.normal(jax.random.key(i), (100, 60)) for i in range(2))
    values = {row.metric: row.mean for row in select(measured(x, y, 0), method="truth")}
    assert values["linear_cka"] > 0.25 and values["mutual_neighbours"] > 0.05
    assert values["calibrated_linear_cka"] < 0.03
    assert values["calibrated_mutual_neighbours"] < 0.05


def test_a_map_is_measured_on_items_it_was_not_fitted_on():
    rng = np.random.default_rng(0)
    x, y = (preprocess(jnp.asarray(rng.normal(size=(90, 40)), jnp.float32)) for _ in range(2))
    (row,) = select(measured(x, y, 0), method="least_squares", metric="mrr")
    assert row.mean < 0.15  # 45 pairs in 40 dimensions: on its own pairs the map would be near 1


def test_a_calibrated_similarity_is_zero_by_chance_and_one_at_its_maximum():
    by_chance = jnp.linspace(0.2, 0.4, 20)
    # The ceil(.95 * 21) = 20th smallest of 21: the largest by chance, if s is larger.
    expected = {1.0: 1.0, 0.7: (0.7 - 0.4) / 0.6, 0.4: 0.0, 0.3: 0.0, 0.1: 0.0}
    for similarity, value in expected.items():
        found = spaces.calibrated(jnp.float32(similarity), by_chance)
        np.testing.assert_allclose(found, value, atol=1e-6)
