"""Images as clouds of points (the MNIST report): data, training and evaluation."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt8
from sklearn.neighbors import KNeighborsClassifier

from common.data.sets.images import MNIST_5K, Images, load
from common.parallel import map_rows
from common.run import train
from common.run.workdir import Workdir, write_arrays
from wasserstein_embed import cloud, siamese
from wasserstein_embed.cloud import Clouds, Distance

SPLITS = {MNIST_5K: ("train+test[:1500]", "test[1500:]")}  # 4,000 and 1,000 images
BLOCK_ROWS = 512  # images that are embedded together


class Splits(NamedTuple):
    """Training images and held-out images."""

    train: Images
    test: Images


def read(dataset: str, train_split: str, test_split: str, cache: Path) -> Splits:
    """Reads both splits.

    Args:
      dataset: see `common.data.sets.images.load`.
      train_split: in TFDS's notation; empty for the default.
      test_split: likewise.
      cache: the data cache.

    Raises:
      UserError: an unknown set or split, or files that can't be read.
    """
    default = SPLITS.get(dataset, ("train", "test"))
    names = (train_split or default[0], test_split or default[1])
    return Splits(*(load(dataset, name, cache) for name in names))


def clouds_file(part: str) -> str:
    """File below the run's folder in which a part stores the clouds of the held-out images."""
    return f"clouds/{part}.npz"


def train_and_measure(
    training: siamese.Training,
    splits: Splits,
    random_seed: int,
    sinkhorn: Distance,
    *,
    num_neighbours: int,
    num_test_pairs: int,
    evaluate_every: int,
    work: Workdir,
    part: str,
) -> list[dict]:
    """Trains a network, stores the clouds of the held-out images, and measures them.

    Args:
      training: settings of the network and its training.
      splits: the images.
      random_seed: of the parameters and the batches.
      sinkhorn: distance of the Sinkhorn nearest neighbours.
      num_neighbours: of the nearest-neighbour classifiers.
      num_test_pairs: number of fixed pairs of held-out images, half of them of one class.
      evaluate_every: steps between evaluations of the test pairs, which are also checkpoints.
      work: the run's folder.
      part: name of the training.

    Returns:
      `metric` and `value`: loss (if it is one of pairs) and mean distances of the test pairs;
      accuracy of the nearest
      neighbours by Euclidean and by Sinkhorn distance (label `neighbours_by`).
    """
    x, test_x = (jnp.asarray(images.images) for images in splits)
    classes, test_classes = (siamese.group_by_class(images.labels) for images in splits)
    pairs = siamese.sample_pairs(jax.random.key(0), test_classes, num_test_pairs)

    def evaluate(state: train.State) -> dict:
        return _measure_pairs(embed(training.network, test_x, state.parameters), *pairs, training)

    start, batches = jax.random.split(jax.random.key(random_seed))
    state = train.run(
        siamese.step,
        siamese.init(training, start),
        siamese.Data(x, classes, batches),
        training,
        num_steps=training.steps,
        chunk=evaluate_every,
        work=work,
        part=part,
        evaluate=evaluate,
    )
    known, found = (embed(training.network, images, state.parameters) for images in (x, test_x))
    weights = {} if found.weights is None else {"weights": found.weights}
    arrays = {"points": found.points, "labels": splits.test.labels, **weights}
    write_arrays(work.path / clouds_file(part), arrays)
    last = _measure_pairs(found, *pairs, training)
    measured = [{"metric": name, "value": float(value)} for name, value in last.items()]
    k = min(num_neighbours, len(splits.train.labels))
    for name, predicted in _classify(known, splits.train.labels, found, k, sinkhorn).items():
        value = float((predicted == splits.test.labels).mean())
        labels = {"neighbours_by": name}
        measured.append({"metric": "knn_accuracy", "value": value, "labels": labels})
    return measured


@partial(jax.jit, static_argnames="network")
def embed(network: siamese.Network, images: UInt8[Array, "n h w c"], parameters) -> Clouds:
    """The clouds of any number of images, computed in blocks on all devices."""
    return map_rows(partial(siamese.embed, network), images, parameters, block=BLOCK_ROWS)


@partial(jax.jit, static_argnames="training")
def _measure_pairs(clouds: Clouds, first, second, same, training: siamese.Training) -> dict:
    distance = cloud.pair_distances(clouds, first, second, training.distance)
    means = siamese.mean_distances(distance, same)
    found = {f"test_{name}": value for name, value in means.items()}
    if training.temperature is not None:  # its loss is one of batches, not of pairs
        return found
    loss = siamese.contrastive_loss(distance, same, training.margin, training.loss_power)
    return {"test_loss": loss} | found


def _classify(
    known: Clouds, labels: np.ndarray, found: Clouds, k: int, sinkhorn: Distance
) -> dict[str, Int[np.ndarray, " n"]]:
    """Classes by majority vote of the k nearest; of equally frequent classes the lowest."""
    flat, queries = (side.points.reshape(len(side.points), -1) for side in (known, found))
    _, nearest = cloud.nearest_neighbours(found, known, sinkhorn, k)
    votes = labels[np.asarray(nearest)]
    return {
        "euclidean": KNeighborsClassifier(k).fit(flat, labels).predict(queries),
        "sinkhorn": np.array([np.bincount(classes).argmax() for classes in votes]),
    }
