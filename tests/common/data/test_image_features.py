from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from flax import nnx

from common.errors import UserError
from common.spaces import image_features

RNG = np.random.default_rng(0)
MEAN, DEVIATION = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])  # of torchvision
PICTURES = RNG.integers(0, 256, (5, 6, 4, 3), dtype=np.uint8)


class Centre(nnx.Module):
    """The mean of the four pixels in the centre."""

    traced: ClassVar[list] = []  # shapes of the batches that were compiled

    def __call__(self, x):
        self.traced.append(x.shape)
        middle = x.shape[1] // 2
        return x[:, middle - 1 : middle + 1, middle - 1 : middle + 1].mean((1, 2))


@pytest.fixture
def loads(monkeypatch):
    """Puts a network of one operation in place of each; returns the names that are loaded."""
    names = []
    monkeypatch.setattr(
        image_features, "load_network", lambda n, cache: names.append(n) or Centre()
    )
    monkeypatch.setattr(image_features, "BATCH", 2)
    monkeypatch.setattr(image_features, "SHARD", 3)
    return names


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("name", "mean", "scale"),
    [
        ("efficientnet_lite0", 127, 128),
        ("augnet_resnet50", 255 * MEAN, 255 * DEVIATION),
    ],
)
def test_pixels_are_resized_repeated_and_normalised(name, mean, scale, channels, loads, tmp_path):
    pictures = PICTURES[..., :channels]
    vectors = image_features.encode(name, pictures, tmp_path, side=8)
    # The centre of an image stays where it is, and linear interpolation keeps a mean around it.
    centre = pictures[:, 2:4, 1:3].astype(float).mean((1, 2))
    np.testing.assert_allclose(vectors, (centre - mean) / scale * np.ones(3), atol=1e-5)


def test_vectors_are_computed_once_in_batches_of_one_size(loads, tmp_path):
    encode = partial(image_features.encode, "efficientnet_lite0", cache=tmp_path, side=8)
    Centre.traced.clear()
    whole = encode(PICTURES)
    assert Centre.traced == [(2, 8, 8, 3)]  # two batches of the first shard, one of the second
    np.testing.assert_array_equal(encode(PICTURES), whole)
    np.testing.assert_array_equal(encode(PICTURES[:3]), whole[:3])
    assert len(loads) == 1  # the second and the third time nothing was computed
    np.testing.assert_array_equal(encode(PICTURES, cache=tmp_path / "other"), whole)
    assert (encode(PICTURES, side=12) != whole).any() and len(loads) == 3
    assert encode(PICTURES[:0]).shape == (0, 3)
    assert (encode(255 - PICTURES) != whole).all()


def test_images_of_two_channels_are_a_user_error(tmp_path):
    with pytest.raises(UserError, match="one or three channels, not of 2"):
        image_features.encode("augnet_resnet50", PICTURES[..., :2], tmp_path)
