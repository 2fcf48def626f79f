"""Small real runs: whole, killed and resumed, on a user's own files, and given wrong input."""

import json
from pathlib import Path

import numpy as np
import pytest

from anchor_opt import paper_stitching, stitching
from common.data.wheels import cache_dir
from common.errors import UserError
from common.workdir import Workdir
from configs.anchor_opt import stitching as stitching_config

ROOT = Path(__file__).parents[2]
SMALL = {
    "texts": "rotten_tomatoes",
    "num_train": 400,
    "num_test": 200,
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
    made.bootstrap.success_ratio = 0.0  # no second start
    return made


def run(workdir, **changes):
    made = config(**changes)
    work = Workdir(workdir, made.to_dict())
    printed = stitching.stitching(made, work, cache_dir())
    return json.loads((workdir / "results.json").read_text()), printed


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("whole")
    return workdir, *run(workdir)


def test_a_run_leaves_results_table_and_figures(whole):
    workdir, rows, printed = whole
    for row in rows:
        assert row["experiment"] == "stitching" and row["standin"] is True
        assert row["metric"] in ("f1", "mae", "mrr") and row["num_seeds"] == 1
        assert 0 <= row["mean"] <= 1 and row["std"] >= 0
        assert (row["encoder"], row["decoder"]) == (row["source"], row["target"])
    combinations = {
        (row["head"], row["decoder"], row["encoder"])
        for row in rows
        if (row["metric"], row["method"], row["anchors"]) == ("f1", "bootstrap", "continuous")
    }
    assert len(combinations) == 4
    absolute = {(r["decoder"], r["encoder"]) for r in rows if r["representation"] == "absolute"}
    assert absolute == {("minilm_input", "minilm_input"), ("glove", "glove")}
    f1 = {
        (row["method"], row["decoder"], row["encoder"]): row["mean"]
        for row in rows
        if (row["metric"], row["head"]) == ("f1", "published") and row["anchors"] is None
    }
    assert f1["gt", "minilm_input", "minilm_input"] > 0.6  # 400 training texts
    table = (workdir / "table.md").read_text()
    assert "Paper: F1" in table and "stand-ins" in table
    assert "| bootstrap" in printed
    for name in ("f1.png", "relative_spaces.png"):
        assert (workdir / name).stat().st_size > 0
    assert not list(workdir.rglob("*.half"))


def test_a_stopped_run_ends_in_the_same_table(whole, tmp_path, monkeypatch):
    expected, *_ = whole
    with monkeypatch.context() as patch:
        keep = stitching.forms

        def stop(*args):
            if len(list(tmp_path.glob("parts/*.json"))) == 2:  # in the bootstrap's part
                raise KeyboardInterrupt
            return keep(*args)

        patch.setattr(stitching, "forms", stop)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path)
    assert not (tmp_path / "table.md").exists()
    run(tmp_path)
    for name in ("results.json", "table.md"):
        assert (tmp_path / name).read_text() == (expected / name).read_text()


def views(seed=0, dimension=24, rows=400):
    """Two encoders of unequal dimension, different texts, 60 given pairs, two classes.

    As many as in `SMALL`: heads are compiled once for all tests.
    """
    rng = np.random.default_rng(seed)
    bases = [np.linalg.qr(rng.normal(size=(d, 16)))[0] for d in (dimension, dimension + 6)]
    centres = 2 * rng.normal(size=(2, 16))
    pairs = rng.normal(size=(60, 16)) + centres[rng.integers(0, 2, 60)]
    found = []
    for basis in bases:
        labels = rng.integers(0, 2, rows + 200)
        texts = (rng.normal(size=(rows + 200, 16)) + centres[labels]) @ basis.T
        found.append(
            {
                "train": texts[:rows],
                "test": texts[rows:],
                "train_labels": labels[:rows] + 1,
                "test_labels": labels[rows:] + 1,
                "anchors": pairs @ basis.T,
            }
        )
    return found


def test_files_with_given_anchors(tmp_path):
    names = {}
    for role, arrays in zip(("source", "target"), views(), strict=True):
        np.savez(tmp_path / f"{role}.npz", **arrays)
        names[role] = str(tmp_path / f"{role}.npz")
    options = names | {"methods": ("gt",)}
    rows, _ = run(tmp_path / "run", **options)
    assert {row["metric"] for row in rows} == {"f1", "mae"}  # no text is in both spaces
    assert {row["standin"] for row in rows} == {False}
    for row in rows:
        if row["method"] == "gt" and row["metric"] == "f1":
            assert row["mean"] > 0.9  # the spaces are rotations of one another
    with pytest.raises(UserError, match="The oracle needs the same training texts"):
        run(tmp_path / "oracle", **options | {"methods": ("gt", "oracle")})
    with pytest.raises(UserError, match="the files hold 60 pairs"):
        run(tmp_path / "many", **options | {"num_anchors": 61})


def test_given_pairs_stay_paired_through_the_shuffle():
    raw = [stitching.encoded.Encoded(**arrays) for arrays in views()]
    fixed, moving = (stitching._space(view) for view in raw)
    problem = stitching._problem(fixed, moving, config(), random_seed=3)
    np.testing.assert_array_equal(problem.fixed[problem.anchors], fixed.anchors)
    np.testing.assert_array_equal(problem.moving[problem.truth[problem.anchors]], moving.anchors)
    np.testing.assert_array_equal(problem.moving[problem.seeds], moving.anchors[:15])
    assert len(problem.fixed) == len(problem.moving) == 460


def test_test_texts_are_centred_by_the_training_mean():
    view = stitching.encoded.Encoded(**views()[0])
    space = stitching._space(view)
    train = view.train / np.linalg.norm(view.train, axis=1, keepdims=True)
    test = view.test[0] / np.linalg.norm(view.test[0]) - train.mean(0)
    np.testing.assert_allclose(space.texts.test[0], test / np.linalg.norm(test), atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"methods": ("gt", "magic")}, "no method 'magic'"),
        ({"heads": ("published", "magic")}, "no head 'magic': choose one of published, inductive"),
        ({"texts": "amazon"}, "'amazon': choose one of imdb, rotten_tomatoes"),
        ({"num_anchors": 401}, "do not fit"),
        ({"optimise": ("both",)}, "no space to optimise 'both'"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path, changes, says):
    with pytest.raises(UserError, match=says):
        run(tmp_path, **changes)


def test_published_numbers():
    """Spot checks of Table 6; English is the optimised space."""
    assert paper_stitching.value("gt", True, False, "f1") == (0.51, 0.01)
    assert paper_stitching.value("seed", False, True, "mae") == (0.92, 0.02)
    assert paper_stitching.value("bootstrap", False, True, "f1") == (0.46, 0.01)
    assert paper_stitching.value("algorithm1", True, True, "mae") == (0.44, 0.01)
    assert paper_stitching.value("oracle", True, False, "f1") is None
