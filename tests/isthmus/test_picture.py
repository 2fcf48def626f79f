"""The picture to explore: what it is made of, and its page, without a browser."""

import html
import importlib.util
import json
import re

import numpy as np
import pytest

import isthmus
from common import alignment, csls
from common.errors import UserError
from common.linear import unit
from isthmus import picture
from isthmus.align.discovery import Alignment
from isthmus.align.files import Space
from tests.samples import rotated_spaces

NAUGHTY = '</script><b>"it\'s" `${1}`\\'


@pytest.fixture(scope="module")
def view():
    """Known pairs of 100 rows, the first of them twice, with another row the second time."""
    x, y, truth = rotated_spaces()
    pairs = np.array([*enumerate(truth[:100]), (0, truth[200])])
    aligner = alignment.fit("procrustes", x, y, pairs=pairs[:-1], names=("a", "b"))
    texts = [NAUGHTY, *(f"x{row}" for row in range(1, len(x)))]
    spaces = Space("a", texts, x), Space("b", [f"y{row}" for row in range(len(y))], y)
    return picture.View(aligner, *spaces, pairs)


@pytest.fixture
def fewer(monkeypatch):
    monkeypatch.setattr(picture, "MAX_ROWS", 150)
    monkeypatch.setattr(picture, "MAX_PAIRED", 90)


def test_points_are_rows_of_pairs_and_others_with_partners_and_neighbours(view, fewer):
    table = picture.points(view)
    of_a, of_b = (table[table["space"] == name] for name in ("a, mapped", "b"))
    assert len(of_a) == len(of_b) == 150 and set(of_b.index) == set(range(150, 300))
    rows = [int(text[1:]) if text != NAUGHTY else 0 for text in table["text"]]
    joined = of_a[of_a["partner"] >= 0]
    assert len(joined) in (89, 90)  # rows of a, one of which may be in two of the 90 pairs
    known = {tuple(pair) for pair in view.pairs}
    assert all((rows[i], rows[point.partner]) in known for i, point in joined.iterrows())
    back = table.loc[joined["partner"], "partner"].to_numpy()
    assert (back == joined.index).all()
    assert (table["confidence"].isna() == (table["partner"] < 0)).all()

    # Neighbours are those of the mapped vectors, of the other space.
    mapped = unit(np.asarray(view.aligner.apply(view.source.vectors[rows[:150]])))
    keys = unit(np.asarray(view.aligner.normalise_target(view.target.vectors[rows[150:]])))
    cosines = mapped @ keys.T
    for i, near, shown in zip(range(150), table["nearest"], table["cosine"], strict=False):
        assert near[0] == 150 + cosines[i].argmax() and np.diff(shown).max() <= 0
        np.testing.assert_allclose(shown, cosines[i, np.array(near) - 150], atol=1e-6)
    assert table["nearest"][150][0] == cosines[:, 0].argmax()
    partners = joined["partner"].to_numpy()
    sure = csls.confidence(mapped, keys, joined.index.to_numpy(), partners - 150)
    np.testing.assert_allclose(joined["confidence"], sure, rtol=1e-5)

    # Partners are near each other in the picture, beside random points.
    xy = table[["x", "y"]].to_numpy()
    apart = np.linalg.norm(xy[joined.index] - xy[partners], axis=1)
    others = np.linalg.norm(xy[joined.index] - xy[np.roll(partners, 1)], axis=1)
    assert np.median(apart) < np.median(others) / 4


def discovered(view):
    fields = dict.fromkeys(Alignment._fields)
    fields |= {"aligner": view.aligner, "anchors": view.pairs, "confidence": np.ones(101)}
    return Alignment(**fields)


def test_the_page_is_one_file_that_holds_texts_as_they_are(view, fewer, tmp_path):
    pytest.importorskip("bokeh", reason="needs the extra 'explore'")
    texts = [NAUGHTY] * 240, view.target.words
    spaces = view.source.vectors, view.target.vectors
    isthmus.explore(discovered(view), *spaces, tmp_path / "picture.html", texts=texts)
    page = (tmp_path / "picture.html").read_text()
    assert "<title>a and b</title>" in page
    assert not re.search(r"<(?:script|link)\b[^>]*\b(?:src|href)=", page)
    (document,) = re.findall(r"const docs_json = '(.*)';", page)
    assert NAUGHTY not in page and "<" not in document
    written = json.loads(html.unescape(document.replace("\\\\", "\\")))
    assert json.dumps(NAUGHTY) in json.dumps(written)


def test_texts_of_another_number_are_refused(view, tmp_path):
    pytest.importorskip("bokeh", reason="needs the extra 'explore'")
    spaces = view.source.vectors, view.target.vectors
    with pytest.raises(UserError, match=r"240 and 3 texts for .240, 260. vectors: give a text"):
        isthmus.explore(discovered(view), *spaces, tmp_path / "x", texts=(view.source.words, "abc"))


def test_without_bokeh_a_sentence_names_the_extra(monkeypatch, view, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'isthmus[explore]'" in picture.part([view])
    with pytest.raises(UserError, match=r"missing: install bokeh, pip install 'isthmus\[explore"):
        isthmus.explore(discovered(view), view.source.vectors, view.target.vectors, tmp_path / "x")
