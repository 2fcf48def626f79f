"""A small run over images: uninterrupted, killed and resumed; a sweep; wrong names."""

import json

import numpy as np
import pytest

from common.data.packages import cache_dir
from common.data.sets.images import Images
from common.errors import UserError
from common.run.workdir import Workdir
from configs.wasserstein_embed.images import get_config
from configs.wasserstein_embed.sweep_points import get_config as sweep_config
from wasserstein_embed import images
from wasserstein_embed.experiments import images as experiment
from wasserstein_embed.experiments import sweep_points

SMALL = {
    "train_split": "train[:300]",
    "test_split": "test[:60]",
    "batch_size": 32,
    "dataset": "mnist_5k",
    "methods": ("sinkhorn", "euclidean", "cosine"),
    "steps": 9,
    "evaluate_every": 3,
    "num_test_pairs": 60,
    "random_seeds": (0,),
    "distance.iterations": 4,  # unrolled, so that the compilation is proportional
}
METHODS = ("sinkhorn", "euclidean")


def run(folder, **changes):
    config = get_config()
    config.update_from_flattened_dict(SMALL | changes)
    return experiment.run(config, Workdir(folder, {}), cache_dir())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("whole")
    return workdir, run(workdir)


@pytest.mark.network
@pytest.mark.slow
def test_a_run_writes_rows_table_and_figures(whole):
    workdir, table = whole
    rows = json.loads((workdir / "results.json").read_text())
    assert all(row["experiment"] == "images" and row["proxy"] for row in rows)
    assert all((row["labels"]["num_train"], row["num_runs"]) == (300, 1) for row in rows)
    accuracy = {
        (row["method"], row["labels"]["neighbours_by"]): (row["mean"], row["paper_value"])
        for row in rows
        if row["metric"] == "knn_accuracy"
    }
    assert set(accuracy) == {(m, by) for m in SMALL["methods"] for by in METHODS}
    assert accuracy["euclidean", "euclidean"][0] > 0.3  # guessing has .1
    published = {key: value for key, (_, value) in accuracy.items() if value}
    assert published == {(method, "euclidean"): 0.9941 for method in METHODS}
    assert "proxy for MNIST 70k" in table and ".9941" in table
    for name in ("training.png", "clouds.png", "nine.png"):
        assert (workdir / name).stat().st_size > 10_000
    records = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert [r["step"] for r in records if r["part"] == "images-sinkhorn-seed0"] == list(range(10))
    assert records[-1]["loss"] > 0
    assert records[-1]["test_negative"] > records[-1]["test_positive"]
    with np.load(workdir / "clouds/images-euclidean-seed0.npz") as stored:
        assert stored["points"].shape == (60, 3, 2) and len(stored["labels"]) == 60
        assert stored["train_points"].shape == (300, 3, 2) and len(stored["train_labels"]) == 300
    assert not (workdir / "checkpoints/images-sinkhorn-seed0").exists()


@pytest.mark.network
@pytest.mark.slow
def test_a_run_killed_in_the_second_training_resumes(whole, tmp_path, assert_resumes):
    assert_resumes(lambda: run(tmp_path), tmp_path, whole[0], 5)


@pytest.mark.network
@pytest.mark.parametrize(
    "change, message",
    [
        ({"methods": ("sinkhorn", "magic")}, "no method 'magic': choose one of sinkhorn, eucl"),
        ({"dataset": "mnist_5m"}, "'mnist_5m'"),
        ({"dataset": "/nowhere"}, "There is no image set '/nowhere'"),
    ],
)
def test_mistakes_are_user_errors(change, message, tmp_path):
    with pytest.raises(UserError, match=message):
        run(tmp_path, **change)


@pytest.mark.network
def test_the_default_split_has_4000_and_1000_distinct_images():
    splits = images.read("mnist_5k", "", "", cache_dir())
    assert splits.train.images.shape == (4000, 28, 28, 1)
    assert splits.test.images.shape == (1000, 28, 28, 1)
    for split, number in ((splits.train, 400), (splits.test, 100)):
        np.testing.assert_array_equal(np.bincount(split.labels), number)
    images_of_splits = np.concatenate([split.images.reshape(-1, 784) for split in splits])
    assert len(np.unique(images_of_splits, axis=0)) == 5000


def test_a_sweep_has_a_line_for_each_value(tmp_path, monkeypatch):
    """Training is replaced by values that depend on the number of points."""

    def measure(training, *values, **options):
        accuracy = {"euclidean": training.network.num_points / 100, "sinkhorn": 0.5}
        return images.Scores(pairs={}, accuracy=accuracy)

    monkeypatch.setattr(images, "train_and_measure", measure)
    split = Images(np.zeros((60, 28, 28, 1), np.uint8), np.repeat([0, 1], 30), "some")
    monkeypatch.setattr(images, "read", lambda *args: images.Splits(split, split))
    table = sweep_points.run(sweep_config(), Workdir(tmp_path, {}), cache_dir())
    rows = json.loads((tmp_path / "results.json").read_text())
    assert {row["experiment"] for row in rows} == {"sweep_points"}
    values = [(r["sweep_value"], r["labels"]["num_points"], r["mean"]) for r in rows]
    expected = [(m, m, pytest.approx(m / 100)) for m in (1, 2, 3, 5, 10) for _ in METHODS]
    assert [value for value in values if value[2] != 0.5] == expected
    assert "| 10 " in table and (tmp_path / "sweep.png").stat().st_size > 10_000
