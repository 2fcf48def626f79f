import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from common import metrics
from common.errors import UserError
from common.linear import unit
from common.retrieval import in_order
from isthmus.store import estimate, remapping
from isthmus.store.remapping import LENGTHS, choose


def spaces(count, noise, stretch=1.0, random_seed=0):
    """Rows and the same rotated, stretched and with noise, of eight dimensions."""
    rng = np.random.default_rng(random_seed)
    x = rng.normal(size=(count, 8)).astype(np.float32)
    rotation = np.linalg.qr(np.random.default_rng(9).normal(size=(8, 8)))[0]
    y = x @ rotation * np.geomspace(stretch, 1, 8) + noise * rng.normal(size=x.shape)
    return x, y.astype(np.float32)


def of_pairs(queries, own, rows, embedded, store):
    searches = [estimate.Searched(queries, [own], store)]
    return estimate.estimated(searches, rows, embedded, len(store))[0]


def test_the_simplest_map_that_is_as_good_is_chosen():
    isometry, stretched = choose(*spaces(200, 0.3)), choose(*spaces(200, 0.1, stretch=6.0))
    assert isometry.aligner.method == isometry.best.method == "procrustes"
    assert stretched.aligner.method == "ridge"
    assert [one.method for one in stretched.candidates] == ["procrustes", *remapping.PENALISED]
    assert stretched.candidates[1].kept > stretched.candidates[0].kept + 0.1


def test_a_map_between_whitened_rows_is_chosen_if_both_spaces_are_stretched_and_have_noise():
    x, y = spaces(200, 0.2, stretch=6.0)
    noisy = x + 0.2 * np.random.default_rng(1).normal(size=x.shape)
    found = choose((noisy * np.geomspace(1, 6, 8)).astype(np.float32), y)
    assert found.aligner.method == found.best.method == "whitened_procrustes"


def test_fewer_pairs_than_dimensions_are_mapped_by_ridge():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(96, 64)).astype(np.float32)
    y = x @ np.linalg.qr(rng.normal(size=(64, 64)))[0]
    assert choose(x, y).best.method == "procrustes"  # the simplest, without noise
    assert choose(x[:63], y[:63]).best.method == "ridge"


def test_held_out_rows_are_mapped_by_maps_that_have_not_seen_them():
    x, y = (spaces(100, 0.3, random_seed=i)[0] for i in (1, 2))
    noise = choose(x, y)
    cosines = np.sum(np.asarray(noise.mapped) * np.asarray(noise.embedded), axis=1)
    assert abs(cosines.mean()) < 0.1
    assert sorted(noise.rows) == list(range(100))
    rows = noise.aligner.normalise_target(y[noise.rows])
    np.testing.assert_allclose(noise.embedded, rows, atol=1e-6)


def test_what_is_kept_is_the_overlap_of_the_lists_of_nearest_rows():
    x, y = (np.asarray(unit(z)) for z in spaces(300, 0.3))
    queries = x[:40]
    ranked, nearest = (np.argsort(-queries @ store.T, axis=1) for store in (y, x))
    kept = remapping.kept(queries, y, nearest[:, :10])
    for length, name in LENGTHS.items():
        lists = zip(ranked[:, :length], nearest[:, :10], strict=True)
        overlap = np.mean([len(set(a) & set(b)) / 10 for a, b in lists])
        np.testing.assert_allclose(kept[name], overlap, rtol=1e-6)
    same = remapping.kept(queries, x, nearest[:, :10])
    np.testing.assert_allclose(list(same.values()), 1, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("coarse", [np.sign, np.ones_like], ids=["signs alone", "all the same"])
def test_rows_that_a_store_cannot_tell_apart_are_found_by_chance(coarse):
    """As those of quantised vectors, of which many have the same products with a query."""
    x, y = spaces(6_000, 0.1)
    old, new = (np.asarray(unit(z)) for z in (coarse(x), y))
    nearest = np.argsort(-new[:500] @ new.T, axis=1)[:, 1:11]
    true = remapping.kept(old[:500], old, nearest)
    pairs = np.arange(500, 2_500)
    estimates = of_pairs(old[pairs], old[pairs], pairs, new[pairs], old)
    for name, (value, uncertainty) in estimates.items():
        assert abs(value - true[name]) < max(0.05, uncertainty), name


def test_pairs_that_a_map_was_fitted_to_do_not_stand_in_the_way_of_others():
    """Of a map that has learned its pairs by heart, the estimate is that of the held-out maps."""
    x, y = (np.asarray(unit(z)) for z in spaces(2_000, 0.3))
    pairs = np.arange(1_000)
    learned = np.concatenate([y[:1_000], x[1_000:]])  # the truth of each pair
    options = y[pairs], x[pairs], pairs, y[pairs]
    assert of_pairs(*options, learned) == of_pairs(*options, x)


def test_pairs_are_sought_by_maps_that_have_seen_neither_them_nor_the_query():
    x, y = spaces(200, 0.3)
    choice, folds = choose(x, y), remapping.SETTINGS.folds
    fold, other = choice.rows[: 200 // folds], y.copy()
    other[fold] = y[fold][::-1]  # of a fold, which no map of its queries or rows may see
    searches = [estimate._by_folds(choice, z, np.arange(200), x, folds, False) for z in (y, other)]
    for number, (before, after) in enumerate(zip(*searches, strict=True)):
        assert np.array_equal(before.store, after.store) == (number == 0)
        same = np.all(np.asarray(before.own[0]) == np.asarray(after.own[0]), axis=1)
        assert same[: len(fold)].all() and same[len(fold) :].all() == (number == 0)


def test_candidates_are_put_in_order_by_their_products():
    queries, keys = spaces(40, 0.3)[0][:7], spaces(40, 0.3)[1]
    candidates = np.stack([np.random.default_rng(i).permutation(40)[:9] for i in range(7)])
    ordered = np.asarray(in_order(queries, keys, candidates))
    for query, row, before in zip(queries, ordered, candidates, strict=True):
        assert list(row) == sorted(before, key=lambda i: -query @ keys[i])


def test_ndcg_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    relevant = rng.random((30, 50)) < 0.2
    relevant[:, 0] |= ~relevant.any(axis=1)
    scores = -np.arange(50.0)[None].repeat(30, axis=0)
    ours = metrics.ndcg(relevant, relevant.sum(axis=1), 10)
    assert ours.mean() == pytest.approx(ndcg_score(relevant, scores, k=10), abs=1e-6)


def test_few_pairs_are_refused():
    with pytest.raises(UserError, match="9 and 9 rows: give 10 or more"):
        choose(*spaces(9, 0.1))


def test_from_a_few_pairs_of_which_none_is_found_an_estimate_is_not_certain():
    rng = np.random.default_rng(0)  # rows are unrelated to the pairs
    given = [unit(rng.normal(size=(count, 64)).astype(np.float32)) for count in (50, 50, 50, 5_000)]
    queries, own, embedded, store = given
    estimates = of_pairs(queries, own, np.arange(50), embedded, store)
    assert estimates["recall_10"].value < 0.02 < 0.05 < estimates["recall_10"].uncertainty


@pytest.mark.slow
def test_estimates_from_few_pairs_of_a_large_store_are_as_uncertain_as_they_say():
    """The nearest of the 60 pairs has the rank 200; the ranks 1 to 10 are asked for."""
    x, y = (np.asarray(unit(z)) for z in spaces(12_000, 0.6))
    nearest = np.argsort(-y[:300] @ y.T, axis=1)[:, 1:11]
    true = remapping.kept(x[:300], x, nearest)["recall_10"]
    covered = 0
    for random_seed in range(8):
        pairs = np.random.default_rng(random_seed).permutation(len(x))[:60]
        estimates = of_pairs(x[pairs], x[pairs], pairs, y[pairs], x)
        value, uncertainty = estimates["recall_10"]
        covered += abs(value - true) <= uncertainty
        assert uncertainty > 0.1
    assert covered >= 7
