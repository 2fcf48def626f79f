"""The array API of anchor_opt.align."""

import dataclasses

import numpy as np
import pytest

from anchor_opt import align
from common.errors import UserError
from common.linear import unit
from common.run.workdir import Workdir
from tests.samples import rotated_spaces, unit_rows


@pytest.fixture(scope="module")
def discovered(tmp_path_factory):
    x, y, truth = rotated_spaces()
    pairs = np.stack([np.arange(15), truth[:15]], axis=1)
    pairs[3, 1] = truth[100]  # a wrong pair
    others = np.stack([np.arange(15), truth[50:65]], axis=1)  # the first of two translations counts
    pairs = np.concatenate([pairs, others])
    work = tmp_path_factory.mktemp("work")
    return align.discover(x, y, pairs, names=("a", "b"), workdir=Workdir(work, {})), pairs, work


@pytest.mark.slow
def test_spaces_of_different_size_and_dimension_are_aligned(discovered):
    x, y, truth = rotated_spaces()
    result = discovered[0]
    assert not result.failed and result.agreement > 0.9 and result.corrected_agreement > 0.8
    assert result.probability > 0.99
    assert result.initialization == "pairs" and result.rejected_pairs == [3]
    rows, targets = result.anchors.T
    assert len(rows) > 220 and (truth[rows] == targets).mean() > 0.97
    assert (np.diff(result.confidence) <= 0).all()
    relative = result.relative(x, y, 40)
    assert [r.shape for r in relative] == [(240, 40), (260, 40)]
    assert np.sum(relative[0] * relative[1][truth], axis=1).mean() > 0.95


@pytest.mark.slow
def test_the_aligner_maps_vectors_to_their_partners(discovered):
    x, y, truth = rotated_spaces()
    aligner = discovered[0].aligner
    assert (aligner.source, aligner.target) == ("a", "b")
    partners = aligner.normalise_target(y)[truth[:5]]
    cosines = np.sum(unit(aligner.apply(x[:5])) * partners, axis=1)
    assert cosines.min() > 0.9


@pytest.mark.slow
def test_progress_bars_are_shown_on_request_alone(discovered, capfd):
    x, y, _ = rotated_spaces()
    _, pairs, work = discovered
    for progress in (False, True):  # from checkpoints
        align.discover(x, y, pairs, workdir=Workdir(work / ".", {}), progress=progress)
        out, shown = capfd.readouterr()
        assert not out and ("align/refine" in shown if progress else not shown)


@pytest.mark.slow
def test_spaces_are_aligned_without_known_pairs():
    """The same 300 of 500 rows are the most frequent ones of both spaces, in unknown order."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 20)) * np.linspace(2, 0.5, 20)
    y = x @ np.linalg.qr(rng.normal(size=(30, 30)))[0][:20] + 0.02 * rng.normal(size=(500, 30))
    order = np.concatenate([rng.permutation(300), 300 + rng.permutation(200)])
    settings = align.SETTINGS
    settings = dataclasses.replace(
        settings,
        bootstrap=dataclasses.replace(
            settings.bootstrap, search_rows=300, search_steps=20, group_rows=100
        ),
    )
    result = align.discover(x, y[order], settings=settings)
    assert (
        not result.failed
        and result.initialization == "profiles-geometry-0.5"
        and result.rejected_pairs == []
    )
    assert len(result.anchors) > 450
    np.testing.assert_array_equal(order[result.anchors[:, 1]], result.anchors[:, 0])


def test_a_right_translation_of_a_held_out_row_ranks_first_and_wrong_ones_do_not():
    """Each row has a wrong translation, before the right one or after it; three rows no other."""
    x, y, truth = rotated_spaces()
    right = np.stack([np.arange(30), truth[:30]], axis=1)
    wrong = np.stack([np.arange(30), truth[30:60]], axis=1)
    pairs = np.concatenate([wrong[:5], right[3:], wrong])
    ranks, confidence = align.held_out(x, y, pairs, folds=2)
    assert ranks.shape == (30,) and (ranks[3:] == 0).mean() > 0.9 and not (ranks[:3] == 0).any()
    assert confidence.shape == (30,) and ((confidence > 0) & (confidence <= 1)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": unit_rows(0, 5, 3)}, "has 5 vectors: give at least 20"),
        ({"pairs": [[0, 99]]}, "Pair 0 is outside"),
    ],
)
def test_invalid_input_is_refused(change, message):
    given = {"source": unit_rows(0, 30, 3), "target": unit_rows(1, 30, 4)} | change
    with pytest.raises(UserError, match=message):
        align.discover(**given)


def test_one_pair_cannot_be_held_out():
    with pytest.raises(UserError, match="give at least two"):
        align.held_out(unit_rows(0, 30, 3), unit_rows(1, 30, 3), [[0, 0]])
