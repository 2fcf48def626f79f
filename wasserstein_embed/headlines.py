"""The main results, for RESULTS.md; the first two are in the README."""

from common.run.records import Headline

IMAGES = {"neighbours_by": "euclidean", "metric": "knn_accuracy"}
WORDS, R2 = "wasserstein_embed/words", {"method": "wasserstein_r2", "set": "men"}
HEADLINES = (
    Headline(
        "images, kNN accuracy, trained by Sinkhorn",
        "wasserstein_embed/images_mnist",
        IMAGES | {"method": "sinkhorn"},
    ),
    Headline(
        "the same, trained by Euclidean distance",
        "wasserstein_embed/images_mnist",
        IMAGES | {"method": "euclidean"},
    ),
    Headline(
        "graphs, distortion of clouds of five points in the plane",
        "wasserstein_embed/graphs",
        {"recipe": "published", "method": "wasserstein_r2", "size": 5},
    ),
    Headline("words, rank correlation with MEN, clouds of ten points in the plane", WORDS, R2),
    Headline("the same, points that start on a circle", f"{WORDS}_circle", R2),
    Headline("the same, vectors of as many numbers", WORDS, R2 | {"method": "euclidean_20"}),
)
