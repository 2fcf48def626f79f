import numpy as np
import pytest

from common import alignment, remapping
from common.errors import UserError
from common.linear import unit


def spaces(count, noise, stretch=1.0, random_seed=0):
    """Rows and the same rotated, stretched and with noise, of eight dimensions."""
    rng = np.random.default_rng(random_seed)
    x = rng.normal(size=(count, 8)).astype(np.float32)
    rotation = np.linalg.qr(np.random.default_rng(9).normal(size=(8, 8)))[0]
    y = x @ rotation * np.geomspace(stretch, 1, 8) + noise * rng.normal(size=x.shape)
    return x, y.astype(np.float32)


def chosen(x, y):
    return remapping.choose(alignment.fit("procrustes", x, y), x, y)


def test_the_simplest_map_that_is_as_good_is_chosen():
    isometry, stretched = chosen(*spaces(200, 0.3)), chosen(*spaces(200, 0.1, stretch=6.0))
    assert isometry.aligner.method == "procrustes"
    assert stretched.aligner.method == "least_squares"
    assert [one.method for one in stretched.candidates] == list(alignment.METHODS)
    assert stretched.candidates[1].kept > stretched.candidates[0].kept + 0.1


def test_held_out_rows_are_mapped_by_maps_that_have_not_seen_them():
    noise = chosen(*(spaces(100, 0.3, random_seed=i)[0] for i in (1, 2)))
    cosines = np.sum(np.asarray(noise.mapped) * np.asarray(noise.embedded), axis=1)
    assert abs(cosines.mean()) < 0.1


def test_recall_is_the_overlap_of_the_lists_of_nearest_rows():
    x, y = (np.asarray(unit(z)) for z in spaces(300, 0.3))
    queries = x[:40]
    found = remapping.measured(queries, y, x)
    for k in (1, 10):
        lists = [np.argsort(-queries @ store.T, axis=1)[:, :k] for store in (y, x)]
        overlap = np.mean([len(set(a) & set(b)) / k for a, b in zip(*lists, strict=True)])
        np.testing.assert_allclose(found[f"recall_{k}"], overlap, rtol=1e-6)
    same = remapping.measured(queries, x, x)
    np.testing.assert_allclose(list(same.values()), 1, rtol=1e-6)


@pytest.mark.slow
def test_the_recall_in_a_larger_store_is_estimated_from_held_out_pairs():
    x, y = spaces(6_200, 0.3)
    found = chosen(x[:500], y[:500])
    queries, mapped, embedded = (
        unit(found.aligner.normalise_target(y[6_000:])),
        unit(found.aligner.apply(x[:6_000])),
        unit(found.aligner.normalise_target(y[:6_000])),
    )
    true = remapping.measured(queries, mapped, embedded)
    few = remapping.estimated(found.mapped, found.embedded, len(found.mapped))
    many = remapping.estimated(found.mapped, found.embedded, 6_000)
    for name, one in many.items():
        assert abs(one.value - true[name]) < max(0.05, one.uncertainty)
    assert few["recall_10"].value > many["recall_10"].value + 0.1


@pytest.mark.slow
def test_the_curve_has_numbers_up_to_half_of_the_pairs():
    x, y = spaces(200, 0.3)
    found = remapping.curve(alignment.fit("procrustes", x, y), x, y, 200)
    assert list(found) == [10, 30, 100]
    assert found[100].value > found[10].value


def test_few_pairs_are_refused():
    with pytest.raises(UserError, match="9 and 9 rows: give 10 or more"):
        chosen(*spaces(9, 0.1))
