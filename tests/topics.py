"""A text of two topics, whose words an embedding has to separate."""

import numpy as np


def tokens(num_texts):
    """Texts of words 0 to 3 and of words 4 to 7 in turn, with a gap of two positions."""
    rng = np.random.default_rng(0)
    texts = [np.append(rng.integers(4, size=12) + 4 * (i % 2), [-1, -1]) for i in range(num_texts)]
    return np.concatenate(texts).astype(np.int32)


def are_separated(vectors):
    """Whether all cosines within a topic are larger than all cosines between topics."""
    x = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = x @ x.T
    same_topic = np.arange(8)[:, None] // 4 == np.arange(8) // 4
    return cosine[same_topic].min() > cosine[~same_topic].max()
