"""The networks against PyTorch, by outputs that were computed once.

Recipe, with torch 2.13, efficientnet-lite-pytorch 0.1.0 and the code of imgsim 0.1.2: the networks
in eval mode for the input np.random.default_rng(0).normal(size=(1, side, side, 3)) in float32, with
its channels moved to the front. EfficientNet.from_pretrained(name, weights_path):
extract_features(x).mean((2, 3)), side 224 (Lite0) and 260 (Lite2).
imgsim.Vectorizer().my_model: forward(x), side 224.
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from common.data.packages import cache_dir
from common.encoders.weights import with_weights
from common.spaces import image_features

REFERENCE = Path(__file__).parents[1] / "fixtures" / "image_encoders_reference.npz"


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "side"),
    [("efficientnet_lite0", 224), ("efficientnet_lite2", 260), ("augnet_resnet50", 224)],
)
def test_outputs_agree_with_pytorch(name, side):
    network = image_features.load_network(name, cache_dir())
    image = np.random.default_rng(0).normal(size=(1, side, side, 3)).astype(np.float32)
    values = nnx.jit(lambda network, x: network(x))(network, image)
    with np.load(REFERENCE) as reference:
        expected = reference[name]
    assert values.shape == expected.shape and expected.std() > 0.3
    np.testing.assert_allclose(values, expected, atol=1e-4)


def test_weights_that_are_absent_of_another_shape_or_not_finite_are_errors():
    def weights(outputs=1000, **values):
        return {"_fc.weight": np.ones((outputs, 1280)), **values}

    class Head(nnx.Module):
        def __init__(self):
            self._fc = nnx.Linear(1280, 1000, rngs=nnx.Rngs(0))

    bias = {"_fc.bias": np.arange(1000.0)}
    head = with_weights(Head, weights(**bias))
    np.testing.assert_array_equal(head._fc.bias[...], np.arange(1000))
    assert head._fc.kernel.dtype == jnp.float32
    wrong = (weights(), weights(999, **bias), weights(**{"_fc.bias": np.full(1000, np.nan)}))
    for given in wrong:
        with pytest.raises(ValueError, match=r"_fc\.(bias|weight) is not a finite array"):
            with_weights(Head, given)
    with pytest.raises(ValueError, match=r"module\._fc"):
        with_weights(Head, weights(**bias), prefix="module.")
