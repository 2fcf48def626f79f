"""News whose relevance to a query is known: the headline of an article asks for the article.

The collection `articles` has the first 500 characters of each of the 2,057 articles of BBC news,
of which one is relevant to a headline, its own; `sentences` has the 37,549 sentences of 4 to 40
words of all articles, of which those of its own article are relevant (4 or more, 16 in the median).
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from common.data.sets import bbc
from common.encoders import texts as text_encoders
from common.errors import check_choice
from common.spaces.sentences import MAX_PIECES, of_length

COLLECTIONS = ("articles", "sentences")
ARTICLE_CHARACTERS = 500
ARTICLE_PIECES = 128  # word pieces of such a beginning, of which it has 110 in the mean


class Judged(NamedTuple):
    """Headlines, documents, and the one query to which each document is relevant."""

    queries: Float[np.ndarray, "q d"]
    documents: Float[np.ndarray, "n d"]
    query_of: Int[np.ndarray, " n"]


def load(collection: str, encoder: str, cache: Path) -> Judged:
    """Returns one of `COLLECTIONS`, encoded on first use, and resumably; raises as `encode`."""
    documents, query_of, max_pieces = _documents(collection, cache)
    headlines = [text_encoders.as_query(encoder, text) for text in bbc.load(cache).headlines]
    queries = text_encoders.encode(encoder, headlines, cache, max_pieces=MAX_PIECES)
    vectors = text_encoders.encode(encoder, documents, cache, max_pieces=max_pieces)
    return Judged(queries, vectors, np.array(query_of, np.int32))


def _documents(collection: str, cache: Path) -> tuple[list[str], list[int], int]:
    """The texts of a collection, the article of each, and after how many word pieces it is cut."""
    check_choice("collection", collection, COLLECTIONS)
    bodies = bbc.load(cache).bodies
    if collection == "articles":
        texts = [body[:ARTICLE_CHARACTERS] for body in bodies]
        return texts, list(range(len(texts))), ARTICLE_PIECES
    sentences = [
        (sentence, article) for article, body in enumerate(bodies) for sentence in of_length(body)
    ]
    texts, articles = zip(*sentences, strict=True)
    return list(texts), list(articles), MAX_PIECES
