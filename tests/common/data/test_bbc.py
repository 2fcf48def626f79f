import numpy as np
import pytest

from common.data.packages import cache_dir
from common.data.sets import bbc

pytestmark = pytest.mark.network


def test_articles_are_those_of_the_package():
    articles = bbc.load(cache_dir())
    assert len(articles.headlines) == len(articles.bodies) == len(articles.labels) == 2_057
    np.testing.assert_array_equal(np.bincount(articles.labels), [498, 362, 389, 486, 322])
    assert articles.headlines[0] == "Ad sales boost Time Warner profit"
    assert bbc.first_paragraph(articles.bodies[0]).startswith("Quarterly profits at US media giant")
    assert "benefited from sales of high-speed internet" in articles.bodies[0].split("\n")[1]
    assert all(text and text == text.strip() for text in articles.headlines + articles.bodies)


def test_headlines_and_first_paragraphs_are_distinct():
    articles = bbc.load(cache_dir())
    for texts in (articles.headlines, map(bbc.first_paragraph, articles.bodies)):
        folded = [text.casefold() for text in texts]
        assert len(set(folded)) == len(folded)


def test_the_one_latin_1_character_is_decoded():
    text = "".join(bbc.load(cache_dir()).bodies)
    assert "£" in text
    assert not any("\ud800" <= letter <= "\udfff" or letter == "\ufffd" for letter in text)
