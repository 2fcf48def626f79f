"""Translation by retrieval in common coordinates, and the nearest words of a word there."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from common import csls
from common.errors import check_choice
from common.linear import unit
from common.metrics import precision_at_k
from common.retrieval import inverted_softmax_top_k, log_mass, top_k

RETRIEVALS = ("nn", "csls", "inverted_softmax")
CUTS = (1, 5, 10)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hubness:
    """Settings of the retrievals that correct for hubs.

    Attributes:
      hubness_words: about how many source words stand for all of them when the hubness of a target
        word is measured.
      csls_neighbours: neighbours over which CSLS averages.
      inverse_temperature: of the inverted softmax.
    """

    hubness_words: int
    csls_neighbours: int
    inverse_temperature: float


def precision(
    source: Float[Array, "n r"],
    target: Float[Array, "m r"],
    queries: Int[Array, " q"],
    translations: Int[Array, "q g"],
    retrieval: str,
    hubness: Hubness,
) -> dict[str, float]:
    """P@1, P@5 and P@10 of the queries' translations among all target words.

    Args:
      source: the source space in common coordinates.
      target: the target space in common coordinates.
      queries: source rows to translate.
      translations: target rows that translate each query, padded with -1.
      retrieval: 'nn' (largest cosine), 'csls' or 'inverted_softmax'.
      hubness: settings of the latter two.

    Raises:
      UserError: an unknown retrieval.
    """
    x, z = unit(source), unit(target)
    # Source words are in order of frequency, and every n-th of them is used. From the most frequent
    # ones alone, the hubness of rare target words would be underestimated.
    asked, others = x[queries], x[:: max(1, len(x) // hubness.hubness_words)]
    k = min(max(CUTS), len(z))
    check_choice("retrieval", retrieval, RETRIEVALS)
    if retrieval == "nn":
        ranked = top_k(asked, z, k).index
    elif retrieval == "csls":
        neighbours = min(hubness.csls_neighbours, len(others), len(z))
        key_hubness = csls.hubness(z, others, neighbours)
        ranked = csls.top_k(asked, z, k, neighbours, key_hubness=key_hubness).index
    else:
        mass = log_mass(z, others, hubness.inverse_temperature)
        ranked = inverted_softmax_top_k(asked, z, k, hubness.inverse_temperature, mass).index
    return {f"p_at_{cut}": float(precision_at_k(ranked, translations, cut)) for cut in CUTS}


def nearest_words(
    source: Float[Array, "n r"],
    target: Float[Array, "m r"],
    pair: tuple[int, int],
    words: tuple[list[str], list[str]],
    count: int,
) -> dict[str, list[str]]:
    """The nearest `count` words of a word and of its translation, as in Table 2.

    Spaces are in common coordinates; `pair` is the word's source row and its translation's target
    row, and `words` are those of both spaces.

    Returns:
      `source`: source words nearest to the word; `target`: target words nearest to its translation;
      `both`: words of both spaces nearest to the word, target words marked by a star.
    """
    x, z = unit(source), unit(target)
    starred = [f"{word}*" for word in words[1]]

    def nearest(query, keys, names, excluded):
        rows = top_k(query[None], keys, min(count + 1, len(keys))).index[0].tolist()
        return [names[row] for row in rows if row != excluded][:count]

    word, translation = pair
    return {
        "source": nearest(x[word], x, words[0], word),
        "target": nearest(z[translation], z, words[1], translation),
        "both": nearest(x[word], jnp.concatenate([x, z]), [*words[0], *starred], word),
    }
