"""Stitching of two files of vectors, and the problems of which anchors are drawn."""

import json

import numpy as np
import pytest

from anchor_opt import runner
from anchor_opt.experiments import stitching
from anchor_opt.reports import stitching as report
from common.errors import UserError
from common.run.results import Row
from common.run.workdir import Workdir
from common.spaces.labelled_vectors import LabelledVectors
from configs.anchor_opt import stitching as stitching_config

SMALL = {"num_unlabelled": 0, "num_anchors": 60, "random_seeds": (0,), "heads": ("published",)}


def config(**changes):
    made = stitching_config.get_config()
    made.update(SMALL | changes)
    return made


def views():
    """Two encoders of different dimension with different texts, 60 given pairs and two classes."""
    rng = np.random.default_rng(0)
    bases = [np.linalg.qr(rng.normal(size=(d, 16)))[0] for d in (24, 30)]
    centres = 2 * rng.normal(size=(2, 16))
    pairs = rng.normal(size=(60, 16)) + centres[rng.integers(0, 2, 60)]
    spaces = []
    for basis in bases:
        labels = rng.integers(0, 2, 600)
        texts = (rng.normal(size=(600, 16)) + centres[labels]) @ basis.T
        train, test = np.split(texts, [400])
        spaces.append(LabelledVectors(train, test, *np.split(labels + 1, [400]), pairs @ basis.T))
    return spaces


@pytest.mark.slow
def test_files_with_given_anchors(tmp_path):
    names = [str(tmp_path / f"{role}.npz") for role in runner.ROLES]
    for name, space in zip(names, views(), strict=True):
        np.savez(name, **{field: x for field, x in space._asdict().items() if x is not None})

    def run(folder, **changes):
        made = config(pairs=(":".join(names),), **changes)
        stitching.run(made, Workdir(tmp_path / folder, made.to_dict()), tmp_path)
        return json.loads((tmp_path / folder / "results.json").read_text())

    rows = run("whole", methods=("gt",))
    assert {row["metric"] for row in rows} == {"f1", "mae"}  # no text is in both spaces
    assert {row["proxy"] for row in rows} == {False}
    for row in rows:
        if row["method"] == "gt" and row["metric"] == "f1":
            assert row["mean"] > 0.9  # the spaces are rotations of one another
    with pytest.raises(UserError, match="lstsq_truth needs the same training texts"):
        run("truth", methods=("gt", "lstsq_truth"))
    with pytest.raises(UserError, match="the files hold 60 pairs"):
        run("many", methods=("gt",), num_anchors=61)


def problem_of(source, target, **changes):
    made = config(**changes)
    grid = runner.grid(made)
    sizes = made.num_unlabelled, made.shared
    return stitching.draw(source, target, grid, *sizes, "target", random_seed=3)


@pytest.mark.parametrize(("shared", "common"), [(1.0, 100), (0.0, 60)])
def test_anchors_outside_the_task_are_drawn_from_the_shared_unlabelled_texts(shared, common):
    texts = np.random.default_rng(1).normal(size=(140, 24)).astype(np.float32)
    spaces = [
        space._replace(anchors=None, unlabelled=texts @ basis)
        for space, basis in zip(views(), (np.eye(24), np.eye(24)[:, ::-1]), strict=True)
    ]
    problem = problem_of(*spaces, num_unlabelled=100, shared=shared)
    assert len(problem.source) == len(problem.target) == 100
    has_partner = np.flatnonzero(problem.truth >= 0)
    assert len(has_partner) == common and set(problem.anchors) <= set(has_partner)
    np.testing.assert_array_equal(problem.target_pairs, problem.truth[problem.anchors[:15]])
    np.testing.assert_allclose(problem.source.mean(0), 0, atol=0.05)
    if shared == 1:  # the same texts have the same mean, so that rows stay equal
        partners = problem.target[problem.truth[has_partner]][:, ::-1]
        np.testing.assert_allclose(problem.source[has_partner], partners, atol=1e-5)


def test_given_pairs_stay_paired_through_the_shuffle():
    source, target = map(stitching.preprocessed, views())
    problem = problem_of(source, target)
    np.testing.assert_array_equal(problem.source_anchors, source.anchors)
    np.testing.assert_array_equal(problem.target[problem.truth[problem.anchors]], target.anchors)
    np.testing.assert_array_equal(problem.target[problem.target_pairs], target.anchors[:15])
    assert len(problem.source) == len(problem.target) == 460


def test_test_texts_are_centred_by_the_training_mean():
    raw = views()[0]
    train = raw.train / np.linalg.norm(raw.train, axis=1, keepdims=True)
    test = raw.test[0] / np.linalg.norm(raw.test[0]) - train.mean(0)
    centred = stitching.preprocessed(raw).test[0]
    np.testing.assert_allclose(centred, test / np.linalg.norm(test), atol=1e-5)


@pytest.mark.parametrize(
    ("method", "decoder_sought", "encoder_sought", "metric", "expected"),
    [
        ("gt", True, False, "f1", (0.51, 0.01)),
        ("seed", False, True, "mae", (0.92, 0.02)),
        ("bootstrap", False, True, "f1", (0.46, 0.01)),
        ("algorithm1", True, True, "mae", (0.44, 0.01)),
        ("lstsq_truth", True, False, "f1", None),
    ],
)
def test_published_numbers_stand_where_the_paper_has_them(
    method, decoder_sought, encoder_sought, metric, expected
):
    """Samples of Table 6, where English is the optimised space."""
    of = {True: "en", False: "es"}
    names = {"source": of[encoder_sought], "target": of[decoder_sought]}
    labels = {"representation": "relative", "optimised": "en"}
    about = {"experiment": "stitching", "dataset": "reviews", "metric": metric, "mean": 0.5}
    number = report.published(Row(**about, method=method, **names, labels=labels), {})
    assert (number and (number.value, number.std)) == expected
