import jax
import numpy as np
import pytest

from anchor_opt import api, defaults
from anchor_opt.induce import induce
from common.errors import UserError
from common.workdir import Workdir


def unit_rows(seed, n, d):
    x = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize(("n", "m", "frequent"), [(37, 23, 100), (20, 45, 15)])
def test_a_dictionary_is_csls_with_the_hubness_of_frequent_rows(n, m, frequent):
    x, y = unit_rows(0, n, 5), unit_rows(1, m, 5)
    found = induce(x, y, neighbours=3, frequent=frequent)
    s = x @ y.T
    rx = np.sort(s[:, :frequent], axis=1)[:, -3:].mean(1)
    ry = np.sort(s[:frequent], axis=0)[-3:].mean(0)
    scores = 2 * s - rx[:, None] - ry
    to_target = np.asarray(found.to_target)
    np.testing.assert_array_equal(to_target, scores.argmax(1))
    np.testing.assert_array_equal(found.to_source, scores.argmax(0))
    np.testing.assert_allclose(found.score, scores.max(1), atol=1e-5)
    np.testing.assert_array_equal(found.mutual, scores.argmax(0)[to_target] == np.arange(n))
    e = np.exp(30 * s)
    shares = np.minimum(e / e.sum(1, keepdims=True), e / e.sum(0))
    np.testing.assert_allclose(found.confidence, shares[np.arange(n), to_target], rtol=1e-4)


def spaces(n=240, m=260, d=12, d_target=16):
    """A space and another of more dimensions and rows, rotated, shuffled, with noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)) * np.linspace(2, 0.5, d)
    y = rng.normal(size=(m, d_target)) * 0.3
    rotation = np.linalg.qr(rng.normal(size=(d_target,) * 2))[0][:d]
    y[:n] = x @ rotation + 0.05 * rng.normal(size=(n, d_target))
    order = rng.permutation(m)
    return x + 1, y[order] - 2, np.argsort(order)[:n]


def quick():
    config = defaults.config()
    config.bootstrap.search_words = 200
    config.start.words = (200,)
    config.start.epsilon = (0.02,)
    config.start.steps = 60
    return config


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    x, y, truth = spaces()
    seeds = np.stack([np.arange(12), truth[:12]], axis=1)
    seeds[3, 1] = truth[100]  # a wrong one
    work = tmp_path_factory.mktemp("work")
    return api.discover(x, y, seeds, names=("a", "b"), workdir=Workdir(work, {})), seeds, work


def test_spaces_of_other_sizes_and_dimensions_correspond(found):
    x, y, truth = spaces()
    result = found[0]
    assert not result.failed and result.objective > 1.3 * result.chance
    assert result.start == "seeds" and result.disbelieved == [3]
    rows, targets = result.anchors.T
    assert len(rows) > 220 and (truth[rows] == targets).mean() > 0.97
    assert (np.diff(result.confidence) <= 0).all()
    # The aligner is one of new vectors, and a pytree.
    assert (result.aligner.moving, result.aligner.fixed) == ("a", "b")
    moved = jax.jit(lambda aligner, z: aligner.normalise_moving(z) @ aligner.matrix)(
        result.aligner, x[:5].astype(np.float32)
    )
    np.testing.assert_allclose(moved, result.aligner.apply(x[:5]), atol=1e-5)
    own = result.aligner.normalise_fixed(y)[truth[:5]]
    assert np.sum(np.asarray(moved) * own, axis=1).min() > 0.8
    relative = result.relative(x, y, 40)
    assert [r.shape for r in relative] == [(240, 40), (260, 40)]
    assert np.sum(relative[0] * relative[1][truth], axis=1).mean() > 0.95


def test_a_search_goes_on_in_its_workdir(found):
    x, y, _ = spaces()
    result, seeds, work = found
    again = api.discover(x, y, seeds, names=("a", "b"), workdir=Workdir(work / ".", {}))
    assert again.objective == result.objective
    np.testing.assert_array_equal(again.anchors, result.anchors)


def test_no_seeds_at_all():
    """Who is frequent is known, 300 of 500 rows, which of them is which is not."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 20)) * np.linspace(2, 0.5, 20)
    y = x @ np.linalg.qr(rng.normal(size=(30, 30)))[0][:20] + 0.02 * rng.normal(size=(500, 30))
    order = np.concatenate([rng.permutation(300), 300 + rng.permutation(200)])
    config = defaults.config()
    config.bootstrap.search_words, config.bootstrap.search_steps = 300, 20
    config.start.words, config.start.epsilon, config.start.steps = (300,), (0.02,), 60
    found = api.discover(x, y[order], config=config)
    assert not found.failed and found.start.startswith("gromov") and found.disbelieved == []
    assert len(found.anchors) > 450
    np.testing.assert_array_equal(order[found.anchors[:, 1]], found.anchors[:, 0])


def test_held_out_seeds_are_found_again():
    x, y, truth = spaces()
    seeds = np.stack([np.arange(24), truth[:24]], axis=1)
    seeds[:3, 1] = np.roll(seeds[:3, 1], 1)  # wrong ones are not
    ranks = api.held_out(x, y, seeds, folds=2)
    assert ranks.shape == (24,) and (ranks[3:] == 0).mean() > 0.9 and not (ranks[:3] == 0).any()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"source": np.zeros((30, 3))}, "zero"),
        ({"source": np.full((30, 3), np.nan)}, "not finite"),
        ({"source": np.ones(3)}, "give rows"),
        ({"source": unit_rows(0, 5, 3)}, "has 5 vectors: give at least 20"),
        ({"target": [["a"]]}, "no array of numbers"),
        ({"seeds": [[0, 0], [0, 1]]}, "Row 0 of the space 'source' is in more than one"),
        ({"seeds": [[0, 1], [1, 1]]}, "Row 1 of the space 'target' is in more than one"),
        ({"seeds": [[0, 99]]}, "0 to 29"),
        ({"seeds": [[0.5, 1.0]]}, "give integers"),
        ({"seeds": [0, 1]}, "give integers"),
        ({"method": "magic"}, "No aligner"),
        ({"names": ("a", "a")}, "name them apart"),
    ],
)
def test_wrong_input(change, says):
    given = {"source": unit_rows(0, 30, 3), "target": unit_rows(1, 30, 4)} | change
    with pytest.raises(UserError, match=says):
        api.discover(**given)


def test_nothing_to_hold_out():
    with pytest.raises(UserError, match="Cannot leave out"):
        api.held_out(unit_rows(0, 30, 3), unit_rows(1, 30, 3), [[0, 0]])
