"""What the documentation shows of the recorded results (`python -m docs.render`)."""

from matplotlib.figure import Figure

from common.run.records import Headline, Record
from wasserstein_embed.reports import graphs, images, words

IMAGES = {"neighbours_by": "euclidean", "metric": "knn_accuracy"}
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
    Headline(
        "words, rank correlation with MEN, clouds of ten points in the plane",
        "wasserstein_embed/words",
        {"method": "wasserstein_r2", "set": "men"},
    ),
    Headline(
        "the same, points that start on a circle",
        "wasserstein_embed/words_circle",
        {"method": "wasserstein_r2", "set": "men"},
    ),
    Headline(
        "the same, vectors of as many numbers",
        "wasserstein_embed/words",
        {"method": "euclidean_20", "set": "men"},
    ),
)


def figures(record: Record) -> dict[str, Figure]:
    """Name -> figure, of those that the rows of a recorded result suffice for.

    Those of images need the clouds and the steps that were logged, as those of words do.
    """
    if record.rows[0].experiment == "graphs":
        return {"distortion": graphs.figure(record.rows)}
    return {"sweep": images.sweep_figure(record.rows)} if record.rows[0].sweep_over else {}


def tables(record: Record) -> dict[str, str]:
    """The tables of a recorded result by title, as in table.md."""
    report = {"graphs": graphs, "words": words}.get(record.rows[0].experiment, images)
    return report.tables(record.rows)
