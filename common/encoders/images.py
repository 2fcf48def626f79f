"""Convolutional networks that map images to vectors, in Flax, with weights of PyTorch checkpoints.

EfficientNet-Lite (Tan and Le 2019, https://arxiv.org/abs/1905.11946, in the variant of 2020 without
squeeze-and-excitation and with ReLU6) was trained to classify ImageNet. The ResNet-50 (He et al.
2016, https://arxiv.org/abs/1512.03385, with the stride in the 3 x 3 convolutions) was trained by
AugNet (Chen et al. 2021, https://arxiv.org/abs/2106.06250) without labels.

Attributes are named as in the checkpoints, so that a path of attributes is the name of a parameter.
The networks are for inference: batch normalisation uses the stored means and variances.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from common.arrays import AnyArray

# Stages of EfficientNet: blocks, kernel size, stride, factor of expansion, channels.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


def _convolution(inputs, outputs, size, stride, rngs, padding: str | int = "SAME") -> nnx.Conv:
    return nnx.Conv(
        inputs, outputs, (size, size), stride, padding=padding, use_bias=False, rngs=rngs
    )


def _normalisation(channels: int, epsilon: float, rngs: nnx.Rngs) -> nnx.BatchNorm:
    return nnx.BatchNorm(channels, use_running_average=True, epsilon=epsilon, rngs=rngs)


class DepthwiseConv(nnx.Module):
    """A convolution of each channel with a kernel of its own, padded as in TensorFlow.

    It is a sum over the kernel's entries, which XLA fuses: on a CPU its grouped convolution takes
    about eight times as long.
    """

    def __init__(self, channels: int, size: int, stride: int, rngs: nnx.Rngs):
        shape = (size, size, 1, channels)
        self.kernel = nnx.Param(nnx.initializers.lecun_normal()(rngs.params(), shape))
        self.stride = stride

    def __call__(self, x: Float[AnyArray, "b h w c"]) -> Float[Array, "b h2 w2 c"]:
        size, s = len(self.kernel), self.stride
        outputs = [-(-pixels // s) for pixels in x.shape[1:3]]
        padding = [
            max((n - 1) * s + size - h, 0) for n, h in zip(outputs, x.shape[1:3], strict=True)
        ]
        x = jnp.pad(x, ((0, 0), *((p // 2, p - p // 2) for p in padding), (0, 0)))
        ends = [(n - 1) * s + 1 for n in outputs]
        return jnp.asarray(
            sum(
                x[:, i : i + ends[0] : s, j : j + ends[1] : s] * self.kernel[i, j, 0]
                for i in range(size)
                for j in range(size)
            )
        )


class InvertedBottleneck(nnx.Module):
    """Expansion of the channels, a convolution of each channel, projection, residual connection."""

    def __init__(
        self, inputs: int, outputs: int, size: int, stride: int, expansion: int, rngs: nnx.Rngs
    ):
        channels = inputs * expansion
        if expansion > 1:
            self._expand_conv = _convolution(inputs, channels, 1, 1, rngs)
            self._bn0 = _normalisation(channels, 1e-3, rngs)
        self._depthwise_conv = DepthwiseConv(channels, size, stride, rngs)
        self._bn1 = _normalisation(channels, 1e-3, rngs)
        self._project_conv = _convolution(channels, outputs, 1, 1, rngs)
        self._bn2 = _normalisation(outputs, 1e-3, rngs)
        self.expands, self.residual = expansion > 1, stride == 1 and inputs == outputs

    def __call__(self, x: Float[Array, "b h w c"]) -> Float[Array, "b h2 w2 c2"]:
        y = jax.nn.relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = jax.nn.relu6(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return x + y if self.residual else y


class EfficientNetLite(nnx.Module):
    """Maps RGB images to 1,280 features.

    Stem, head and the number of blocks in the first and last stage are the same in all variants.
    Channels are multiplied by `width`, to multiples of 8, and blocks by `depth`, rounded up.
    """

    def __init__(self, *, width: float, depth: float, rngs: nnx.Rngs):
        self._conv_stem = _convolution(3, 32, 3, 2, rngs)
        self._bn0 = _normalisation(32, 1e-3, rngs)
        blocks, inputs = [], 32
        for stage, (repeats, size, stride, expansion, channels) in enumerate(STAGES):
            if 0 < stage < len(STAGES) - 1:
                repeats = math.ceil(depth * repeats)
            outputs = _rounded(width * channels)
            for block in range(repeats):
                step = 1 if block else stride
                blocks.append(InvertedBottleneck(inputs, outputs, size, step, expansion, rngs))
                inputs = outputs
        self._blocks = nnx.List(blocks)
        self._conv_head = _convolution(inputs, 1280, 1, 1, rngs)
        self._bn1 = _normalisation(1280, 1e-3, rngs)

    def __call__(self, x: Float[Array, "b h w 3"]) -> Float[Array, "b 1280"]:
        """Returns the features of images whose values are (pixel - 127) / 128."""
        x = jax.nn.relu6(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        return jax.nn.relu6(self._bn1(self._conv_head(x))).mean((1, 2))


def _rounded(channels: float) -> int:
    """The nearest multiple of 8, or the next one if that is smaller by more than a tenth."""
    multiple = max(8, int(channels + 4) // 8 * 8)
    return multiple if multiple >= 0.9 * channels else multiple + 8


class Bottleneck(nnx.Module):
    """Convolutions of size 1, 3 and 1 beside a residual connection."""

    def __init__(self, inputs: int, channels: int, stride: int, rngs: nnx.Rngs):
        self.conv1 = _convolution(inputs, channels, 1, 1, rngs)
        self.conv2 = _convolution(channels, channels, 3, stride, rngs, padding=1)
        self.conv3 = _convolution(channels, 4 * channels, 1, 1, rngs)
        self.bn1, self.bn2 = (_normalisation(channels, 1e-5, rngs) for _ in range(2))
        self.bn3 = _normalisation(4 * channels, 1e-5, rngs)
        self.projects = stride > 1 or inputs != 4 * channels
        if self.projects:
            convolution = _convolution(inputs, 4 * channels, 1, stride, rngs)
            self.downsample = nnx.List([convolution, _normalisation(4 * channels, 1e-5, rngs)])

    def __call__(self, x: Float[Array, "b h w c"]) -> Float[Array, "b h2 w2 c2"]:
        y = jax.nn.relu(self.bn1(self.conv1(x)))
        y = jax.nn.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        if self.projects:
            convolution, normalisation = self.downsample
            x = normalisation(convolution(x))
        return jax.nn.relu(x + y)


class ResNet50(nnx.Module):
    """Maps RGB images to 2,048 pooled features and these to 768 outputs in [-1, 1]."""

    def __init__(self, *, rngs: nnx.Rngs):
        self.conv1 = _convolution(3, 64, 7, 2, rngs, padding=3)
        self.bn1 = _normalisation(64, 1e-5, rngs)
        stage = partial(_stage, rngs=rngs)
        self.layer1 = stage(3, 64, 64, 1)
        self.layer2 = stage(4, 256, 128, 2)
        self.layer3 = stage(6, 512, 256, 2)
        self.layer4 = stage(3, 1024, 512, 2)
        self.fc = nnx.Linear(2048, 768, rngs=rngs)

    def __call__(self, x: Float[Array, "b h w 3"]) -> Float[Array, "b 768"]:
        """Returns the outputs for images normalised by ImageNet's means and deviations."""
        x = jax.nn.relu(self.bn1(self.conv1(x)))
        padding = ((1, 1), (1, 1))  # Flax annotates a name alone
        x = nnx.max_pool(x, (3, 3), (2, 2), padding)  # pyright: ignore[reportArgumentType]
        for block in (*self.layer1, *self.layer2, *self.layer3, *self.layer4):
            x = block(x)
        return jnp.tanh(self.fc(x.mean((1, 2))))


def _stage(blocks: int, inputs: int, channels: int, stride: int, rngs: nnx.Rngs) -> nnx.List:
    first = Bottleneck(inputs, channels, stride, rngs)
    others = [Bottleneck(4 * channels, channels, 1, rngs) for _ in range(blocks - 1)]
    return nnx.List([first, *others])
