"""The same images by two encoders, pretrained ones or files of features."""

import numpy as np
import pytest

from anchor_opt.experiments.vision import load
from common.data.packages import cache_dir
from common.errors import UserError
from common.spaces import image_features


@pytest.mark.network
def test_files_of_features_replace_encoders(tmp_path, monkeypatch):
    np.savez(tmp_path / "mine.npz", anything=features(150))
    monkeypatch.setattr(image_features, "encode", lambda name, images, cache: 2 * features(150))
    for name, scale in (("augnet_resnet50", 2), (str(tmp_path / "mine.npz"), 1)):
        names = name, "efficientnet_lite0"
        pair, labels = load(names, "mnist_5k", "test[:150]", cache_dir())
        np.testing.assert_array_equal(pair.source, scale * features(150))
        np.testing.assert_array_equal(pair.target, 2 * features(150))
        assert len(pair.names) == len(labels) == 150


def test_two_files_of_features_need_no_images_but_as_many_rows(tmp_path):
    np.savez(tmp_path / "a.npz", vectors=features(30), other=np.zeros(3))
    np.savez(tmp_path / "b.npz", vectors=features(29))
    first, second = (str(tmp_path / name) for name in ("a.npz", "b.npz"))
    mine, labels = load((first, first), "no set", "test", tmp_path)
    assert mine.names[-1] == "row 29" and labels is None
    with pytest.raises(UserError, match=r"has 30 rows and .* 29"):
        load((first, second), "no set", "test", tmp_path)


def features(rows):
    return np.ones((rows, 3))
