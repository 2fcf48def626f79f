"""Images as clouds of points (the MNIST report): data, training and evaluation."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Int, UInt8
from sklearn.neighbors import KNeighborsClassifier

from common.data.sets.images import MNIST_5K, Images, load
from common.files import write_arrays
from common.parallel import map_rows
from common.run import train
from common.run.train import Metrics
from common.run.workdir import Workdir
from wasserstein_embed import cloud, siamese
from wasserstein_embed.cloud import Clouds, Distance

SPLITS = {MNIST_5K: ("train+test[:1500]", "test[1500:]")}  # 4,000 and 1,000 images
BLOCK_ROWS = 512  # images that are embedded together


class Splits(NamedTuple):
    """Training images and held-out images."""

    train: Images
    test: Images


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How trained networks are measured on held-out images."""

    num_neighbours: int  # of the nearest-neighbour classifiers
    num_test_pairs: int  # pairs of held-out images, half of them of one class
    evaluate_every: int  # steps between evaluations of these pairs, which are also checkpoints
    distance: Distance  # of the Sinkhorn nearest neighbours


def read(dataset: str, train_split: str, test_split: str, cache: Path) -> Splits:
    """Reads both splits, in TFDS's notation; empty for the default; UserError: there are none.

    The dataset is a name or a path, see `common.data.sets.images.load`.
    """
    default_train, default_test = SPLITS.get(dataset, ("train", "test"))
    names = train_split or default_train, test_split or default_test
    return Splits(*(load(dataset, name, cache) for name in names))


def clouds_file(task: str) -> str:
    """File below the run's folder in which a task stores the clouds of the held-out images."""
    return f"clouds/{task}.npz"


def train_and_measure(
    training: siamese.Training,
    splits: Splits,
    random_seed: int,
    evaluation: Evaluation,
    *,
    work: Workdir,
    task: str,
) -> tuple[dict[str, float], dict[str, float]]:
    """Trains a network, stores the clouds of all images, and measures them.

    The random seed is that of the parameters and the batches.

    Returns:
      Metric -> mean over the test pairs; distance of the nearest neighbours, `euclidean` or
      `sinkhorn` -> kNN accuracy.
    """
    train_x, test_x = (jnp.asarray(images.images) for images in splits)
    train_classes, test_classes = (siamese.group_by_class(images.labels) for images in splits)
    pairs = siamese.sample_pairs(jax.random.key(0), test_classes, evaluation.num_test_pairs)

    def evaluate(state: train.State) -> dict:
        return pair_scores(embed(training.network, test_x, state.parameters), pairs, training)

    of_parameters, of_batches = jax.random.split(jax.random.key(random_seed))
    state = train.run(
        siamese.step,
        siamese.init(training, of_parameters),
        siamese.Data(train_x, train_classes, of_batches),
        training,
        num_steps=training.steps,
        chunk=evaluation.evaluate_every,
        work=work,
        part=task,
        evaluate=evaluate,
    )
    known, queries = (embed(training.network, x, state.parameters) for x in (train_x, test_x))
    weights = {} if queries.weights is None else {"weights": queries.weights}
    arrays = {"points": queries.points, "labels": splits.test.labels, **weights}
    arrays |= {"train_points": known.points, "train_labels": splits.train.labels}
    write_arrays(work.path / clouds_file(task), arrays)
    predicted = classify(known, splits.train.labels, queries, evaluation)
    accuracy = {n: float((labels == splits.test.labels).mean()) for n, labels in predicted.items()}
    means = {n: float(mean) for n, mean in pair_scores(queries, pairs, training).items()}
    return means, accuracy


@partial(jax.jit, static_argnames="network")
def embed(
    network: siamese.Network, images: UInt8[Array, "n h w c"], parameters: nnx.State
) -> Clouds:
    """The clouds of any number of images, computed in blocks on all devices."""
    return map_rows(partial(siamese.embed, network), images, parameters, block=BLOCK_ROWS)


@partial(jax.jit, static_argnames="training")
def pair_scores(clouds: Clouds, pairs: siamese.Pairs, training: siamese.Training) -> Metrics:
    """Mean distances of pairs of one class and of two, and the loss if it is one of pairs."""
    distance = cloud.pair_distances(clouds, pairs.first, pairs.second, training.distance)
    means = siamese.mean_distances(distance, pairs.same).items()
    scores = {f"test_{name}": mean for name, mean in means}
    if training.temperature is None:  # otherwise the loss is one of batches
        scores["test_loss"] = siamese.contrastive_loss(distance, pairs.same, training)
    return scores


def classify(
    known: Clouds, labels: Int[np.ndarray, " m"], queries: Clouds, evaluation: Evaluation
) -> dict[str, Int[np.ndarray, " n"]]:
    """Classes by majority vote of the nearest known images; of equally frequent ones the lowest.

    Returns:
      Distance of the neighbours, `euclidean` or `sinkhorn` (of `evaluation`) -> classes of the
      queries. The known images have the classes `labels`.
    """
    k = evaluation.num_neighbours
    vectors, query_vectors = (x.points.reshape(len(x.points), -1) for x in (known, queries))
    _, nearest = cloud.nearest_neighbours(queries, known, evaluation.distance, k)
    votes = labels[np.asarray(nearest)]
    return {
        "euclidean": KNeighborsClassifier(k).fit(vectors, labels).predict(query_vectors),
        "sinkhorn": np.array([np.bincount(classes).argmax() for classes in votes]),
    }
