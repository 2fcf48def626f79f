"""Weights of a ViT exported from timm, `np.savez(path, **state_dict)`, read into ours."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from anchor_opt.vit import Shape, ViT, with_parameters
from common.data import numpy_files
from common.errors import UserError

HEAD = 64  # numbers an attention head, in all of timm's vit_tiny to vit_large
NAMES = {  # ours -> timm's, where they differ
    "embed": "patch_embed.proj",
    "token": "cls_token",
    "positions": "pos_embed",
    "qkv": "attn.qkv",
    "proj": "attn.proj",
    "fc1": "mlp.fc1",
    "fc2": "mlp.fc2",
    "kernel": "weight",
    "scale": "weight",
}


def load(path: Path, mean: tuple[float, ...], std: tuple[float, ...]) -> ViT:
    """Builds the model that a file of weights fits, without its classification layer.

    Args:
      path: an .npz with timm's names (`blocks.0.attn.qkv.weight`) of a `vit_*_patch*_*` with class
        token and pre-norm blocks.
      mean: of the pixels, 0 to 1, in that model's training: one, or one a channel.
      std: likewise.

    Raises:
      UserError: a file that can't be read, or without a parameter, or with one of another shape.
    """
    weights = _read(path)
    shape = _shape(weights, path, mean, std)
    parameters = nnx.state(nnx.eval_shape(lambda: ViT(shape, nnx.Rngs(0))))

    def value(location, leaf):
        keys = [str(k.key) for k in location if hasattr(k, "key")]  # the rest is nnx's own `.value`
        name = ".".join(NAMES.get(key, key) for key in keys)
        array = _ours(_get(weights, name, path), name)
        if array.shape != leaf.shape:
            raise UserError(
                f"The parameter {name} in {path} has the shape {array.shape}, a ViT of width "
                f"{shape.width} and patches of {shape.patch} pixels {leaf.shape}."
            )
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise UserError(f"The parameter {name} in {path} is not finite: export it again.")
        return jnp.asarray(array, jnp.float32)

    return with_parameters(shape, jax.tree_util.tree_map_with_path(value, parameters))


def _ours(array: np.ndarray, name: str) -> np.ndarray:
    """From timm's layout: [out, in] to [in, out], a convolution over patches to a matrix."""
    if name == "patch_embed.proj.weight" and array.ndim == 4:
        return array.transpose(2, 3, 1, 0).reshape(-1, len(array))
    if array.ndim == 2:
        return array.T
    return array.reshape(array.shape[-2:]) if name == "pos_embed" else array.reshape(-1)


def _shape(weights: dict, path: Path, mean: tuple, std: tuple) -> Shape:
    kernel = _get(weights, "patch_embed.proj.weight", path)
    positions = _get(weights, "pos_embed", path)
    side = round((positions.shape[-2] - 1) ** 0.5) if positions.ndim > 1 else 0
    square = kernel.ndim == 4 and side and side**2 + 1 == positions.shape[-2]
    if not square or 0 in kernel.shape or len(kernel) % HEAD:
        raise UserError(
            f"{path} holds patches of shape {kernel.shape} and positions of shape "
            f"{positions.shape}: export a timm vit_*_patch* of square images with a class token."
        )
    width, channels, patch, _ = kernel.shape
    found = (re.match(r"blocks\.(\d{1,9})\.", name, re.ASCII) for name in weights)
    blocks = {int(match[1]) for match in found if match}
    size = side * patch
    depth = 1 + max(blocks, default=-1)
    if depth > len(weights):  # before as many are built
        raise UserError(f"{path} has a block {depth - 1} but not all before: export it again.")
    return Shape((size, size, channels), patch, width, depth, width // HEAD, 0, "token", mean, std)


def _get(weights: dict[str, np.ndarray], name: str, path: Path) -> np.ndarray:
    if name not in weights:
        raise UserError(
            f"{path} has no parameter {name}: save a timm ViT with np.savez(path, **state_dict)."
        )
    return weights[name]


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        return numpy_files.npz(path)
    except FileNotFoundError:
        raise UserError(f"There is no file of weights {path}: correct the path.") from None
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} is no whole .npz of plain arrays: save the weights with np.savez(path, "
            "**{name: value.numpy() for name, value in model.state_dict().items()})."
        ) from error
