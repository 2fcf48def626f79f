"""Small real runs of stitching: complete, stopped and resumed, on files, with invalid input."""

import json

import numpy as np
import pytest

from anchor_opt import runner
from anchor_opt.experiments import stitching
from anchor_opt.reports import stitching as report
from common.data.packages import cache_dir
from common.errors import UserError
from common.run.results import Row, select
from common.run.settings import settings
from common.run.workdir import Workdir
from common.spaces.labelled_vectors import LabelledVectors
from configs.anchor_opt import stitching as stitching_config

SMALL = {
    "pairs": ("minilm_input:glove",),
    "texts": "rotten_tomatoes",
    "num_train": 400,
    "num_test": 200,
    "num_unlabelled": 0,
    "max_pieces": 32,
    "num_anchors": 60,
    "random_seeds": (0,),
    "methods": ("gt", "bootstrap"),
    "heads": ("published",),
}


def config(**changes):
    made = stitching_config.get_config()
    made.update(SMALL | changes)
    made.bootstrap.search_steps = 4
    made.bootstrap.min_gain = made.bootstrap.sure_gain = -1.0  # the first start succeeds
    return made


def run(workdir, **changes):
    made = config(**changes)
    work = Workdir(workdir, made.to_dict())
    printed = stitching.run(made, work, cache_dir())
    return json.loads((workdir / "results.json").read_text()), printed


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("finished")
    return workdir, *run(workdir)


@pytest.mark.network
@pytest.mark.slow
def test_a_run_leaves_results_table_and_figures(finished):
    workdir, rows, printed = finished
    for row in rows:
        assert row["experiment"] == "stitching" and row["proxy"] is True
        assert row["metric"] in ("f1", "mae", "mrr") and row["num_runs"] == 1
        assert 0 <= row["mean"] <= 1 and row["std"] >= 0

    def f1(**wanted):
        selected = select([Row(**row) for row in rows], metric="f1", **wanted)
        return {(row.target, row.source): row.mean for row in selected}

    assert len(f1(method="bootstrap", anchors="continuous")) == 4
    absolute = f1(representation="absolute")
    assert set(absolute) == {("minilm_input", "minilm_input"), ("glove", "glove")}
    assert f1(method="gt")["minilm_input", "minilm_input"] > 0.6  # with 400 training texts
    assert (workdir / "table.md").read_text() == printed + "\n"
    assert "| Bootstrap |" in printed and "F1 on the same encoder, head published" in printed
    assert "in the place of Amazon reviews" in printed and "AO: F1" in printed
    assert (workdir / "f1.png").stat().st_size > 0
    assert not list(workdir.rglob("*.half"))


@pytest.mark.network
@pytest.mark.slow
def test_a_stopped_run_resumes_to_the_same_table(finished, tmp_path, monkeypatch):
    expected, *_ = finished
    with monkeypatch.context() as patch:
        original = runner.keep_anchors

        def stop(*args):
            if len(list(tmp_path.glob("parts/*.json"))) == 2:  # the bootstrap's part
                raise KeyboardInterrupt
            return original(*args)

        patch.setattr(runner, "keep_anchors", stop)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path)
    assert not (tmp_path / "table.md").exists()
    run(tmp_path)
    for name in ("results.json", "table.md"):
        assert (tmp_path / name).read_text() == (expected / name).read_text()


def views():
    """Two encoders of different dimension with different texts, 60 given pairs and two classes.

    The sizes are those of `SMALL`, so that heads are compiled once for all tests.
    """
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
    options = {"pairs": (":".join(names),), "methods": ("gt",), "num_unlabelled": 100}
    rows, _ = run(tmp_path / "run", **options)
    assert {row["metric"] for row in rows} == {"f1", "mae"}  # no text is in both spaces
    assert {row["proxy"] for row in rows} == {False}
    for row in rows:
        if row["method"] == "gt" and row["metric"] == "f1":
            assert row["mean"] > 0.9  # the spaces are rotations of one another
    with pytest.raises(UserError, match="lstsq_truth needs the same training texts"):
        run(tmp_path / "lstsq", **options | {"methods": ("gt", "lstsq_truth")})
    with pytest.raises(UserError, match="the files hold 60 pairs"):
        run(tmp_path / "many", **options | {"num_anchors": 61})


def problem_of(source, target, **changes):
    made = config(**changes)
    grid = runner.grid(made)
    values = settings(stitching.Settings, made)
    return stitching.sample_problem(source, target, grid, values, "target", random_seed=3)


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


@pytest.mark.network
@pytest.mark.slow
def test_encoders_with_few_sentences_in_common(tmp_path):
    rows, printed = run(
        tmp_path,
        pairs=("glove:word2vec", "glove:minilm_input"),
        texts="bbc",
        num_unlabelled=100,
        shared=0.0,
        methods=("gt", "lstsq_truth"),
    )
    assert {row["labels"]["given"] for row in rows if row["method"] == "gt"} == {"glove"}
    assert {row["labels"]["shared"] for row in rows} == {60}
    assert {row["dataset"] for row in rows} == {"bbc"} and "60 of them in both" in printed
    for row in rows:  # five classes
        if (row["method"], row["metric"]) == ("gt", "f1") and row["source"] != row["target"]:
            assert row["mean"] > 0.3
    with np.load(tmp_path / "anchors/glove-word2vec-target-lstsq_truth-seed0.npz") as kept:
        assert kept["target_rows"].min() >= -1


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


@pytest.mark.network
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": ("published", "magic")}, "no head 'magic': choose one of published, inductive"),
        ({"texts": "amazon"}, "'amazon': choose one of bbc, imdb_stars, imdb, rotten_tomatoes"),
        ({"num_anchors": 401}, "do not fit"),
        ({"num_unlabelled": 50}, "do not fit"),
        ({"num_unlabelled": 10**6}, "1,000,000 sentences of reviews are too many"),
        ({"optimise": ("both",)}, "no role 'both'"),
        ({"num_test": 0}, "number of test texts of .* is 0: choose at least 1"),
        ({"num_train": 0}, "number of training texts of .* is 0: choose at least 1"),
        ({"pairs": ()}, "number of pairs is 0"),
    ],
)
def test_invalid_values_are_refused(tmp_path, changes, message):
    with pytest.raises(UserError, match=message):
        run(tmp_path, **changes)


@pytest.mark.parametrize(
    ("method", "decoder_sought", "encoder_sought", "metric", "expected"),
    [
        ("gt", True, False, "f1", (0.51, 0.01)),
        ("seed", False, True, "mae", (0.92, 0.02)),
        ("bootstrap", False, True, "f1", (0.46, 0.01)),
        ("algorithm1", True, True, "mae", (0.44, 0.01)),
        ("lstsq_truth", True, False, "f1", (None, None)),
    ],
)
def test_published_numbers_stand_where_the_paper_has_them(
    method, decoder_sought, encoder_sought, metric, expected
):
    """Samples of Table 6, where English is the optimised space."""
    fields = report.published(method, decoder_sought, encoder_sought, metric)
    assert (fields.get("paper_value"), fields.get("paper_std")) == expected
