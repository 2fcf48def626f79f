import numpy as np
import pytest

from tests.samples import timm_shapes


@pytest.fixture
def timm_weights():
    """Random parameters by the names and shapes of a timm VisionTransformer's state_dict."""
    rng = np.random.default_rng(0)
    shapes = timm_shapes(width=128, depth=2, patch=4, side=3, channels=3)
    shapes |= {"head.weight": (10, 128), "head.bias": (10,)}
    return {name: 0.2 * rng.normal(size=s).astype(np.float32) for name, s in shapes.items()}
