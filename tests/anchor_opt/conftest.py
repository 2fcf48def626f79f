import numpy as np
import pytest


@pytest.fixture
def timm_weights():
    """Random parameters by the names and shapes of a timm VisionTransformer's state_dict."""
    width, depth, patch, side, channels = 128, 2, 4, 3, 3
    rng = np.random.default_rng(0)
    shapes = {
        "cls_token": (1, 1, width),
        "pos_embed": (1, 1 + side**2, width),
        "patch_embed.proj.weight": (width, channels, patch, patch),
        "patch_embed.proj.bias": (width,),
        "norm.weight": (width,),
        "norm.bias": (width,),
        "head.weight": (10, width),
        "head.bias": (10,),
    }
    for i in range(depth):
        for name, out, into in (
            ("attn.qkv", 3 * width, width),
            ("attn.proj", width, width),
            ("mlp.fc1", 4 * width, width),
            ("mlp.fc2", width, 4 * width),
        ):
            shapes[f"blocks.{i}.{name}.weight"] = (out, into)
            shapes[f"blocks.{i}.{name}.bias"] = (out,)
        for name in ("norm1", "norm2"):
            shapes[f"blocks.{i}.{name}.weight"] = shapes[f"blocks.{i}.{name}.bias"] = (width,)
    return {name: 0.2 * rng.normal(size=s).astype(np.float32) for name, s in shapes.items()}
