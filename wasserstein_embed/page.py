"""What the documentation shows of the kept runs (`python -m docs.render`)."""

from common.run.records import Headline, Record
from wasserstein_embed import graphs_report, images_report, words_report

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
        "the same, vectors of as many numbers",
        "wasserstein_embed/words",
        {"method": "euclidean_20", "set": "men"},
    ),
)


def tables(record: Record) -> dict[str, str]:
    """The tables of a kept run by title, the first one after the description, as in table.md."""
    reports = {"graphs": graphs_report, "words": words_report}
    report = reports.get(record.rows[0].experiment, images_report)
    (title, first), *others = report.tables(record.rows).items()
    return {title: f"{report.describe(record.rows)}\n\n{first}", **dict(others)}
