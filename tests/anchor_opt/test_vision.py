"""Two encoders of the same images: trained and cached, or replaced by files of features."""

import numpy as np
import pytest

from anchor_opt.models import encoded_images, vit
from common.data.packages import cache_dir
from common.data.sets import images
from common.errors import UserError
from common.run import train
from common.run.settings import settings
from common.run.workdir import Workdir
from common.spaces import image_features
from configs.anchor_opt.vision import get_config

VITS = ("vit_wide", "vit_narrow")
SMALL = {
    "dataset": "mnist_5k",
    "train_split": "train[:200]",
    "test_split": "test[:150]",
    "encoders.vit_wide.width": 16,  # one shape for both, which is compiled once
    "encoders.vit_wide.depth": 1,
    "encoders.vit_narrow.width": 16,
    "encoders.vit_narrow.depth": 1,
    "training.steps": 20,
    "training.batch": 16,
}


def load(work, cache, names=VITS, **changes):
    config = get_config()
    config.update_from_flattened_dict(SMALL | changes)
    values = settings(encoded_images.Settings, config, encoders=config.encoders.to_dict())
    return encoded_images.load(names, values, work, cache)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache without encoders, which shares the images with the common cache."""
    folder = tmp_path_factory.mktemp("cache")
    images.load("mnist_5k", "train", cache_dir())
    (folder / "tfds").symlink_to((cache_dir() / "tfds").resolve())
    return folder


@pytest.fixture(scope="module")
def encoded(cache, tmp_path_factory):
    return load(Workdir(tmp_path_factory.mktemp("work"), {}), cache)


@pytest.mark.network
def test_encoders_and_encodings_are_cached(encoded, cache, tmp_path, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("computed again")

    monkeypatch.setattr(train, "run", forbidden)
    with monkeypatch.context() as patch:
        patch.setattr(vit, "encode", forbidden)
        again = load(Workdir(tmp_path / "again", {}), cache)
    for first, second in zip(encoded.pair, again.pair, strict=True):
        np.testing.assert_array_equal(first, second)
    assert again.notes == encoded.notes
    # Other images are encoded again, but the encoders are not trained again.
    fewer = load(Workdir(tmp_path / "other", {}), cache, test_split="test[:40]")
    np.testing.assert_allclose(fewer.pair.source, encoded.pair.source[:40], atol=1e-5)
    for change in ({"encoders.vit_wide.random_seed": 5}, {"training.steps": 21}, {"patch": 4}):
        with pytest.raises(AssertionError, match="computed again"):
            load(Workdir(tmp_path / f"{change}", {}), cache, **change)


@pytest.mark.network
def test_pretrained_encoders_and_files_of_features_replace_those_that_are_trained(
    encoded, cache, tmp_path, monkeypatch
):
    np.savez(tmp_path / "mine.npz", anything=features(150))
    monkeypatch.setattr(image_features, "encode", lambda name, images, cache: features(150))
    for name in ("augnet_resnet50", str(tmp_path / "mine.npz")):
        mixed = load(Workdir(tmp_path / f"run-{len(name)}", {}), cache, (name, "vit_narrow"))
        np.testing.assert_array_equal(mixed.pair.source, features(150))
        np.testing.assert_array_equal(mixed.pair.target, encoded.pair.target)
        assert "vit_wide" not in " ".join(mixed.notes) and len(mixed.labels) == 150
        pretrained = "augnet_resnet50: 3 dimensions, pretrained on other images."
        assert (pretrained in mixed.notes) == (name == "augnet_resnet50")
    names = ("augnet_resnet50", "efficientnet_lite0")  # which need no images for training
    both = load(Workdir(tmp_path, {}), cache, names, train_split="no split")
    assert len(both.pair.names) == len(both.labels) == 150


def test_two_files_of_features_need_no_images_but_as_many_rows(tmp_path):
    np.savez(tmp_path / "a.npz", vectors=features(30), other=np.zeros(3))
    np.savez(tmp_path / "b.npz", vectors=features(29))
    first, second = (str(tmp_path / name) for name in ("a.npz", "b.npz"))
    mine = load(Workdir(tmp_path, {}), tmp_path, (first, first), dataset="no set")
    assert mine.pair.names[-1] == "row 29" and mine.labels is None
    with pytest.raises(UserError, match=r"has 30 rows and .* 29"):
        load(Workdir(tmp_path / "other", {}), tmp_path, (first, second))


def features(rows):
    return np.ones((rows, 3))
