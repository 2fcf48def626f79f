"""Images through two encoders: trained and cached, exported weights, one's own features; a run."""

import json
from pathlib import Path

import numpy as np
import pytest

from anchor_opt import vision, vit
from anchor_opt.experiments import across_images
from common import train
from common.data import images
from common.data.wheels import cache_dir
from common.errors import UserError
from common.workdir import Workdir
from configs.anchor_opt.vision import get_config

ROOT = Path(__file__).parents[2]
SMALL = {
    "train_split": "train[:200]",
    "test_split": "test[:150]",
    "encoders.vit_wide.width": 16,  # both of one shape: compiled once
    "encoders.vit_wide.depth": 1,
    "encoders.vit_narrow.width": 16,
    "encoders.vit_narrow.depth": 1,
    "training.steps": 100,
    "training.batch": 16,
}


def small(**changes):
    config = get_config()
    config.update_from_flattened_dict(SMALL | changes)
    return config


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache of encoders of its own, with the images of the common one."""
    folder = tmp_path_factory.mktemp("cache")
    images.load("mnist_5k", "train", cache_dir())
    (folder / "tfds").symlink_to((cache_dir() / "tfds").resolve())
    return folder


@pytest.fixture(scope="module")
def seen(cache, tmp_path_factory):
    return vision.load(small(), Workdir(tmp_path_factory.mktemp("work"), {}), cache)


def test_held_out_images_through_two_trained_encoders(seen):
    assert seen.pair.source.shape == seen.pair.target.shape == (150, 16)
    assert seen.encoders == ("vit_wide", "vit_narrow")
    assert seen.pair.names[:2] == ["test[:150] 0", "test[:150] 1"]
    np.testing.assert_array_equal(np.bincount(seen.labels), [15] * 10)
    assert "vit_wide: 16 dimensions, 1 blocks, 100 steps on 200 other images" in seen.notes


def test_the_cache_holds_encoders_and_encodings(seen, cache, tmp_path, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("computed again")

    monkeypatch.setattr(train, "run", forbidden)
    with monkeypatch.context() as patch:
        patch.setattr(vit, "encode", forbidden)
        again = vision.load(small(), Workdir(tmp_path / "again", {}), cache)
    for first, second in zip(seen.pair, again.pair, strict=True):
        np.testing.assert_array_equal(first, second)
    assert again.notes == seen.notes
    other = small(test_split="test[:40]")  # encoded anew, not trained anew
    fewer = vision.load(other, Workdir(tmp_path / "other", {}), cache)
    np.testing.assert_allclose(fewer.pair.source, seen.pair.source[:40], atol=1e-5)
    for change in ({"encoders.vit_wide.random_seed": 5}, {"training.steps": 101}, {"patch": 4}):
        with pytest.raises(AssertionError, match="computed again"):
            vision.load(small(**change), Workdir(tmp_path / f"{change}", {}), cache)


def test_a_killed_training_goes_on_to_the_same_encodings(seen, cache, tmp_path, monkeypatch):
    (tmp_path / "tfds").symlink_to(cache / "tfds")
    chunk, calls = train._chunk, []

    def killed(state, start, *args):
        calls.append(int(start))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return chunk(state, start, *args)

    monkeypatch.setattr(train, "_chunk", killed)
    work = Workdir(tmp_path / "work", {})
    with pytest.raises(KeyboardInterrupt):
        vision.load(small(), work, tmp_path)
    assert not list(tmp_path.glob("encoders/*"))
    again = vision.load(small(), work, tmp_path)
    assert calls[2] > 0  # not from the start
    np.testing.assert_array_equal(again.pair.source, seen.pair.source)
    assert not list((tmp_path / "work/checkpoints").glob("*"))


def test_ones_own_features_and_weights(cache, timm_weights, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "mine.npz", anything=rng.normal(size=(150, 7)))
    np.savez(tmp_path / "vit.npz", **timm_weights)
    config = small(
        source_features=str(tmp_path / "mine.npz"), target_weights=str(tmp_path / "vit.npz")
    )
    mine = vision.load(config, Workdir(tmp_path / "work", {}), cache)
    assert mine.encoders == (str(tmp_path / "mine.npz"), str(tmp_path / "vit.npz"))
    assert mine.pair.source.shape == (150, 7) and mine.pair.target.shape == (150, 128)
    assert mine.notes == "Images: mnist_5k, test[:150]." and len(mine.labels) == 150


def test_two_files_of_features_need_no_images(tmp_path):
    for name, width in (("a", 4), ("b", 5)):
        np.savez(tmp_path / f"{name}.npz", vectors=np.ones((30, width)), other=np.zeros(3))
    config = small(
        source_features=str(tmp_path / "a.npz"),
        target_features=str(tmp_path / "b.npz"),
        dataset="no set at all",
    )
    mine = vision.load(config, Workdir(tmp_path / "work", {}), tmp_path)
    assert mine.pair.names[-1] == "row 29" and mine.labels is None


def features(rows, row=0, value=1.0):
    vectors = np.ones((rows, 3))
    vectors[row] = value
    return vectors


@pytest.mark.parametrize(
    ("vectors", "change", "says"),
    [
        (features(149), {}, "149 rows and vit_narrow 150"),
        (features(150, 3, np.nan), {}, "row index 3 holds a number that is NaN"),
        (features(150, 4, 0.0), {}, "row index 4 holds zeros alone"),
        (np.ones(150), {}, r"have shape \(150,\)"),
        (features(150), {"source_weights": "x.npz"}, "not both"),
        (None, {"source_features": "none.npz"}, "no file none.npz"),
        (None, {"source": "vit_huge"}, "no encoder 'vit_huge': choose one of vit_narrow, vit_wide"),
        (None, {"patch": 5}, "patch=5 the images' 28 x 28"),
        (None, {"encoders.vit_wide.heads": 3}, "heads=3 has to divide width=16"),
        (None, {"dataset": "mnist_5m"}, "No image set is called 'mnist_5m'"),
    ],
)
def test_a_mistake_is_one_sentence(seen, cache, tmp_path, vectors, change, says):
    if vectors is not None:
        np.savez(tmp_path / "mine.npz", vectors=vectors)
        change = change | {"source_features": str(tmp_path / "mine.npz")}
    with pytest.raises(UserError, match=says):
        vision.load(small(**change), Workdir(tmp_path / "work", {}), cache)


def test_a_run_leaves_table_rows_and_figure(cache, tmp_path):
    config = small(methods=("gt", "seed"), num_anchors=60, random_seeds=(0,), optimise=("target",))
    across_images(config, Workdir(tmp_path, config.to_dict()), cache)
    rows = json.loads((tmp_path / "results.json").read_text())
    assert {row["experiment"] for row in rows} == {"vision"}
    assert all(row["standin"] and row["num_images"] == 150 for row in rows)
    published = {
        (row["method"], row["paper_value"])
        for row in rows
        if (row["metric"], row["source"], row["representation"]) == ("mrr", "vit_wide", "relative")
        and row["target"] == "vit_narrow"
    }
    assert published == {("gt", 0.27), ("seed", 0.03)}
    table = (tmp_path / "table.md").read_text()
    assert "(stand-ins for ViT-base and ViT-small)" in table and "held-out accuracy" in table
    assert "words" not in table
    assert (tmp_path / "relative_spaces.png").stat().st_size > 0
