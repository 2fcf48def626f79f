"""The split of the images, and the classifiers by their nearest clouds."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from common.data.packages import cache_dir
from wasserstein_embed import images
from wasserstein_embed.cloud import Clouds, Distance


@pytest.mark.network
def test_the_default_split_has_4000_and_1000_distinct_images():
    splits = images.read("mnist_5k", "", "", cache_dir())
    for split, number in ((splits.train, 400), (splits.test, 100)):
        assert split.images.shape == (10 * number, 28, 28, 1)
        np.testing.assert_array_equal(np.bincount(split.labels), number)
    images_of_splits = np.concatenate([split.images.reshape(-1, 784) for split in splits])
    assert len(np.unique(images_of_splits, axis=0)) == 5000


def test_each_distance_gives_the_class_of_most_of_its_nearest_images():
    """Between clouds of one point both distances have the order of the points' distances."""
    points = np.random.default_rng(0).normal(size=(40, 1, 2)).astype(np.float32)
    labels = np.arange(30) % 3
    known, queries = Clouds(points[:30]), Clouds(points[30:])
    solver = {"epsilon": 1.0, "iterations": 2, "implicit_diff": False}
    distance = Distance(ground="euclidean", p=2.0, value="transport_cost", **solver)
    options = {"num_test_pairs": 2, "evaluate_every": 1}
    chosen = images.Evaluation(num_neighbours=5, distance=distance, **options)
    nearest = np.argsort(cdist(points[30:, 0], points[:30, 0]), axis=1)[:, :5]
    expected = [np.bincount(labels[rows]).argmax() for rows in nearest]
    for predicted in images.classify(known, labels, queries, chosen).values():
        np.testing.assert_array_equal(predicted, expected)
