"""Images seen by two encoders: trained here, of one's own weights, or as one's own features.

Encoders trained here and all encodings are kept in the cache directory, under a name that hashes
everything they depend on.
"""

import hashlib
import math
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from ml_collections import ConfigDict

from anchor_opt import vit, weights
from common import cli, train
from common.data import images, kept, vectors
from common.data.images import Images
from common.data.pairs import Pair
from common.errors import UserError
from common.workdir import Workdir

CODE = 1  # raised whenever the same config means other encoders or encodings
BATCH = 100  # images encoded at once: a gigabyte in a ViT-base


class Seen(NamedTuple):
    """The held-out images as both encoders see them.

    Attributes:
      pair: the spaces.
      encoders: names of source and target: of an encoder, or the file that took its place.
      labels: class of each image; None without images.
      notes: what the images are, and a sentence on each encoder that was trained here.
    """

    pair: Pair
    encoders: tuple[str, str]
    labels: Int[np.ndarray, " n"] | None
    notes: str


def load(config: ConfigDict, work: Workdir, cache: Path) -> Seen:
    """Encodes the held-out images with both encoders, or reads the user's own features.

    Args:
      config: of the experiment.
      work: the run's folder, for the checkpoints of a training.
      cache: the cache directory.

    Raises:
      UserError: an unknown encoder or image set, files that can't be read, spaces of different
        numbers of images, or sizes that do not fit.
    """
    _check(config)
    held_out = None
    if not (config.source_features and config.target_features):
        held_out = images.load(config.dataset, config.test_split, cache)
    spaces, names = [], []
    notes = [f"Images: {config.dataset}, {held_out.split}."] if held_out else []
    for role in ("source", "target"):
        features, exported = config[f"{role}_features"], config[f"{role}_weights"]
        if features:
            spaces.append(vectors.read_array(Path(features)))
        elif exported:
            spaces.append(_by_weights(Path(exported), config, held_out, cache))
        else:
            vectors_seen, note = _by_trained(config[role], config, held_out, work, cache)
            spaces.append(vectors_seen)
            notes.append(note)
        names.append(features or exported or config[role])
    if len(spaces[0]) != len(spaces[1]):
        raise UserError(
            f"{names[0]} has {len(spaces[0])} rows and {names[1]} {len(spaces[1])}: row i of both "
            "has to be the same image."
        )
    split, labels = (held_out.split, held_out.labels) if held_out else ("row", None)
    rows = [f"{split} {i}" for i in range(len(spaces[0]))]
    return Seen(Pair(rows, *spaces), tuple(names), labels, " ".join(notes))


def _check(config: ConfigDict) -> None:
    """Wrong names, values and paths are said before an encoder is trained."""
    for role in ("source", "target"):
        features, exported = config[f"{role}_features"], config[f"{role}_weights"]
        if features and exported:
            raise UserError(f"Give {role}_features or {role}_weights, not both.")
        for path in filter(None, (features, exported)):
            if not Path(path).exists():
                raise UserError(f"There is no file {path}: correct the path.")
        if not (features or exported):
            cli.choose(config.encoders, config[role], "encoder")
    cli.choose(dict.fromkeys(("mean", "token")), config.pool, "pool")
    cli.require(config, math.isfinite, "a number for each channel, or one", "weights_mean")
    cli.positive(config, "patch", "weights_std")
    for name in config.encoders:
        cli.positive(config, *(f"encoders.{name}.{size}" for size in ("width", "depth", "heads")))
    positive = ("steps", "batch", "learning_rate", "temperature")
    cli.positive(config, *(f"training.{name}" for name in positive))
    cli.share(config, "training.warmup")


def _by_weights(
    path: Path, config: ConfigDict, held_out: Images, cache: Path
) -> Float[np.ndarray, "n d"]:
    model = weights.load(path, config.weights_mean, config.weights_std)
    channels = held_out.images.shape[3]
    if channels not in (1, model.shape.image[2]):
        raise UserError(
            f"{path} reads images of {model.shape.image[2]} channels, '{config.dataset}' has "
            f"{channels}: choose another set or other weights."
        )
    with path.open("rb") as file:
        recipe = {"file": hashlib.file_digest(file, "sha256").hexdigest()}
    return _encoding(path.stem, recipe | {"shape": model.shape}, model, held_out, cache)


def _by_trained(
    name: str, config: ConfigDict, held_out: Images, work: Workdir, cache: Path
) -> tuple[Float[np.ndarray, "n d"], str]:
    encoder = config.encoders[name]
    seen = images.load(config.dataset, config.train_split, cache)
    settings = _settings(name, encoder, config, seen)
    recipe = {
        "settings": settings,
        "random_seed": encoder.random_seed,
        "images": kept.digest(seen.images, seen.labels),
    }
    parameters = _trained(name, recipe, settings, encoder.random_seed, seen, work, cache)
    model = vit.with_parameters(settings.shape, parameters)
    features = _encoding(name, recipe, model, held_out, cache)
    guessed = (features @ model.head.kernel[...] + model.head.bias[...]).argmax(axis=1)
    note = (
        f"{name}: {encoder.width} dimensions, {encoder.depth} blocks, {settings.steps} steps on "
        f"{len(seen.labels):,} other images, held-out accuracy "
        f"{(guessed == held_out.labels).mean():.3f}."
    )
    return features, note


def _settings(name: str, encoder: ConfigDict, config: ConfigDict, seen: Images) -> vit.Training:
    height, width, _ = shape = seen.images.shape[1:]
    if encoder.width % encoder.heads or height % config.patch or width % config.patch:
        raise UserError(
            f"The encoder {name} does not fit: heads={encoder.heads} has to divide "
            f"width={encoder.width}, patch={config.patch} the images' {height} x {width} pixels."
        )
    classes = int(seen.labels.max()) + 1
    return vit.Training(
        vit.Shape(
            tuple(shape),
            config.patch,
            encoder.width,
            encoder.depth,
            encoder.heads,
            classes,
            config.pool,
            (0.5,),
            (0.5,),
        ),
        **config.training,
    )


def _trained(name, recipe, settings, random_seed, seen, work, cache):
    """The parameters of an encoder, from the cache or trained into it."""
    template = jax.eval_shape(lambda: vit.init(settings, random_seed).parameters)
    leaves, tree = jax.tree_util.tree_flatten_with_path(template)
    keys = [jax.tree_util.keystr(location) for location, _ in leaves]
    part = f"encoder-{name}"

    def compute():
        data = vit.Data(
            jnp.asarray(seen.images), jnp.asarray(seen.labels), jax.random.key(random_seed)
        )
        state = train.run(
            vit.step,
            vit.init(settings, random_seed),
            data,
            settings,
            num_steps=settings.steps,
            chunk=50,
            work=work,
            part=part,
        )
        return dict(zip(keys, jax.tree.leaves(state.parameters), strict=True))

    found = kept.arrays(cache / "encoders", name, [CODE, recipe], compute)
    train.forget_checkpoints(work, part)
    return jax.tree.unflatten(tree, [found[key] for key in keys])


def _encoding(name, recipe, model, held_out, cache) -> Float[np.ndarray, "n d"]:
    """Encodings of the held-out images, from the cache or computed into it."""
    recipe = [CODE, recipe | {"encoded": kept.digest(held_out.images)}]

    def compute():
        progress = f"encoding with {name}"
        return {"vectors": vit.encode(model, held_out.images, batch=BATCH, progress=progress)}

    return kept.arrays(cache / "encodings", name, recipe, compute)["vectors"]
