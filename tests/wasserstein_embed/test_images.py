"""A real small run over images: whole, killed and resumed; a sweep; wrong input."""

import json
from pathlib import Path

import numpy as np
import pytest

from common import train
from common.data.images import Images
from common.data.wheels import cache_dir
from common.errors import UserError
from common.workdir import Workdir
from configs.wasserstein_embed.images import get_config
from configs.wasserstein_embed.sweep_points import get_config as sweep_config
from wasserstein_embed import image_report, images

ROOT = Path(__file__).parents[2]
SMALL = {
    "train_split": "train[:300]",
    "test_split": "test[:60]",
    "batch": 32,
    "steps": 9,
    "evaluate_every": 3,
    "test_pairs": 60,
    "random_seeds": (0,),
    "distance.iterations": 4,  # unrolled: compiled in proportion
}


def small(**changes):
    config = get_config()
    config.update_from_flattened_dict(SMALL | changes)
    return config


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("whole")
    return workdir, images.images(small(), Workdir(workdir, {}), cache_dir())


def test_a_run_leaves_rows_table_and_figures(whole):
    workdir, stdout = whole
    rows = json.loads((workdir / "results.json").read_text())
    assert all(row["experiment"] == "images" and row["standin"] for row in rows)
    assert all((row["num_images"], row["num_seeds"]) == (300, 1) for row in rows)
    accuracy = {
        (row["method"], row["neighbours_by"]): (row["mean"], row["paper_value"])
        for row in rows
        if row["metric"] == "knn_accuracy"
    }
    assert set(accuracy) == {(m, by) for m in images.METHODS for by in images.METHODS}
    assert accuracy["euclidean", "euclidean"][0] > 0.3  # chance is .1
    published = {key: value for key, (_, value) in accuracy.items() if value}
    assert published == {("euclidean", "euclidean"): 0.9941}
    table = (workdir / "table.md").read_text()
    assert "stand-in for MNIST 70k" in table and ".9941" in table and "not by Sinkhorn" in table
    assert "| Sinkhorn" in stdout and "pairs a second" in stdout
    for name in ("training.png", "clouds.png", "nine.png"):
        assert (workdir / name).stat().st_size > 10_000
    records = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert [r["step"] for r in records if r["part"] == "seed0-sinkhorn"] == list(range(10))
    last = records[-1]
    assert last["loss"] > 0 and last["test_negative"] > last["test_positive"]
    assert last["pairs_per_second"] > 0
    with np.load(workdir / "clouds/seed0-euclidean.npz") as kept:
        assert kept["points"].shape == (60, 3, 2) and len(kept["labels"]) == 60
    assert not (workdir / "checkpoints/seed0-sinkhorn").exists()


def test_a_run_killed_in_each_training_ends_in_the_same_table(whole, tmp_path, monkeypatch):
    chunk, calls = train._chunk, []

    def killed(state, start, *args):
        calls.append(int(start))
        if len(calls) in (2, 5):
            raise KeyboardInterrupt
        return chunk(state, start, *args)

    monkeypatch.setattr(train, "_chunk", killed)
    work = Workdir(tmp_path, {})
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            images.images(small(), work, cache_dir())
    images.images(small(), work, cache_dir())
    assert calls == [0, 3, 3, 6, 0, 0, 3, 6]
    for name in ("results.json", "table.md"):
        assert (tmp_path / name).read_text() == (whole[0] / name).read_text()


@pytest.mark.parametrize(
    "change, says",
    [
        ({"methods": ("sinkhorn", "magic")}, "no method 'magic': choose one of sinkhorn, eucl"),
        ({"weights": "heavy"}, "no way to weight points 'heavy'"),
        ({"distance.value": "magic"}, "no value 'magic'"),
        ({"points": 0}, "points is 0: give a positive number"),
        ({"batch": 33}, "batch is 33: give an even number"),
        ({"batch": 302}, "has 300 images, a batch 302 pairs"),
        ({"train_split": "train[:10]", "batch": 4}, "the smallest of 1 images: pairs need two"),
        ({"dataset": "mnist_5m"}, "No image set is called 'mnist_5m'"),
        ({"idx": "/nowhere", "train_split": "train"}, "no train-images-idx3-ubyte"),
    ],
)
def test_a_mistake_is_one_sentence(change, says):
    config = small(**change)
    with pytest.raises(UserError, match=says):
        images.check(config)
        images.read(config, cache_dir())


def test_the_split_is_4000_and_1000():
    sets = images.read(get_config(), cache_dir())
    assert sets.train.images.shape == (4000, 28, 28, 1)
    assert sets.test.images.shape == (1000, 28, 28, 1)
    for part, number in ((sets.train, 400), (sets.test, 100)):
        np.testing.assert_array_equal(np.bincount(part.labels), number)
    both = np.concatenate([part.images.reshape(-1, 784) for part in sets])
    assert len(np.unique(both, axis=0)) == 5000


def test_a_sweep_ends_with_a_line_for_each_value(tmp_path, monkeypatch):
    """The trainings are left out: what is around them is the sweep's own."""

    def measured(config, work, sets, part, random_seed, method):
        work.log(part, 1, {"pairs_per_second": 2.0})
        values = {"euclidean": config.points / 100, "sinkhorn": 0.5}
        shared = {"metric": "knn_accuracy"}
        return [shared | {"neighbours_by": k, "value": v} for k, v in values.items()]

    monkeypatch.setattr(images, "_measure", measured)
    some = Images(np.zeros((4, 28, 28, 1), np.uint8), np.array([0, 0, 1, 1]), "some")
    monkeypatch.setattr(images, "read", lambda config, cache: images.Sets(some, some))
    config = sweep_config()
    images.sweep(config, Workdir(tmp_path, {}), cache_dir())
    rows = json.loads((tmp_path / "results.json").read_text())
    found = [(r["sweep_value"], r["num_points"], r["mean"]) for r in rows if r["mean"] != 0.5]
    assert found == [(m, m, m / 100) for m in (1, 2, 3, 8, 16) for _ in range(2)]
    table = (tmp_path / "table.md").read_text()
    assert "| 16 " in table and "| 32 " in table
    assert (tmp_path / "sweep.png").stat().st_size > 10_000


def test_smoothed_curves_keep_their_length_and_level():
    assert image_report._smooth([3.0]).tolist() == [3.0]
    np.testing.assert_allclose(image_report._smooth([2.0] * 300), 2.0)
    assert len(image_report._smooth(list(range(137)))) == 137
