"""Data sets built from packages: interrupted and concurrent builds. Damage: tests/faults."""

import numpy as np
import pytest

from common.data import builders
from common.data.packages import PACKAGES
from common.errors import UserError
from tests.faults.readers import TinyRows


def read(cache):
    return builders.read_table(TinyRows(cache=cache), cache)["text"]


def test_an_interrupted_build_starts_again(tmp_path, monkeypatch, capfd):
    generate = TinyRows._generate_examples

    def interrupted(self):
        yield next(generate(self))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TinyRows, "_generate_examples", interrupted)
        with pytest.raises(KeyboardInterrupt):
            read(tmp_path)
    assert len(read(tmp_path)) == 9
    printed = capfd.readouterr()
    assert printed.out == "" and "splits" not in printed.err  # TFDS prints nothing


def test_a_set_may_be_built_by_another_process_in_the_meantime(tmp_path, monkeypatch):
    table = TinyRows._table

    def slow(self):
        monkeypatch.setattr(TinyRows, "_table", table)
        read(tmp_path)  # the other process
        return table(self)

    monkeypatch.setattr(TinyRows, "_table", slow)
    assert len(read(tmp_path)) == 9


def test_all_blocks_of_a_set_are_read_in_order(tmp_path, monkeypatch):
    class Table(builders.PackageBuilder):
        VERSION = "1.0.0"

        def _source(self):
            columns = {"text": builders.TEXTS, "x": builders.array_column((2,), np.float32)}
            return PACKAGES["reviews"], columns

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


def test_a_cache_that_cannot_be_written_is_a_user_error(tmp_path):
    (tmp_path / "tfds").write_text("a file where the folder should be")
    with pytest.raises(UserError, match=f"Cannot build .*tiny_rows.*{tmp_path}.*ISTHMUS_CACHE"):
        read(tmp_path)
