"""Retrieving translations in common coordinates, and what surrounds a word there."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict

from common.errors import UserError
from common.manifold import to_spheres
from common.metrics import precision_at_k
from common.retrieval import csls_top_k, inverted_softmax_top_k, log_mass, mean_top_k, top_k

RETRIEVALS = ("nn", "csls", "inverted_softmax")
CUTS = (1, 5, 10)


def precision(
    source: Float[Array, "n r"],
    target: Float[Array, "m r"],
    queries: Int[Array, " q"],
    gold: Int[Array, "q g"],
    retrieval: str,
    config: ConfigDict,
) -> dict[str, float]:
    """P@1, P@5 and P@10 of the queries' translations among all target words.

    Args:
      source: the source space in common coordinates.
      target: the target space in them.
      queries: source rows to translate.
      gold: target rows that are right for each, padded with -1.
      retrieval: 'nn' (largest cosine), 'csls' or 'inverted_softmax'.
      config: of the latter two `hubness_words` (about so many source words stand for all),
        `neighbours` and `inverse_temperature`.

    Raises:
      UserError: an unknown retrieval.
    """
    x, z = to_spheres(source), to_spheres(target)
    # Evenly over the order of frequency: from frequent words alone, rare targets would be hubs.
    asked, others = x[queries], x[:: max(1, len(x) // config.hubness_words)]
    k = min(max(CUTS), len(z))
    if retrieval == "nn":
        found = top_k(asked, z, k)[1]
    elif retrieval == "csls":
        near = min(config.neighbours, len(others), len(z))
        hubness = mean_top_k(z, others, near)
        found = csls_top_k(asked, z, k, near, key_hubness=hubness)[1]
    elif retrieval == "inverted_softmax":
        mass = log_mass(z, others, config.inverse_temperature)
        found = inverted_softmax_top_k(asked, z, k, config.inverse_temperature, mass)[1]
    else:
        raise UserError(f"There is no retrieval '{retrieval}': choose {', '.join(RETRIEVALS)}.")
    return {f"p_at_{cut}": float(precision_at_k(found, gold, cut)) for cut in CUTS}


def surroundings(
    source: Float[Array, "n r"],
    target: Float[Array, "m r"],
    word: int,
    translation: int,
    names: tuple[list[str], list[str]],
    count: int,
) -> dict[str, list[str]]:
    """The nearest words of a word and of its translation, each in its language and in both.

    Args:
      source: the source space in common coordinates.
      target: the target space in them.
      word: a source row.
      translation: a target row.
      names: words of both spaces.
      count: words to name.

    Returns:
      `source`: neighbours of the word among source words; `target`: of its translation among target
      words; `aligned`: of the word among the words of both, target words marked by a star.
    """
    x, z = to_spheres(source), to_spheres(target)
    both = jnp.concatenate([x, z])
    labels = [*names[0], *(f"{name}*" for name in names[1])]

    def near(query, keys, words, itself):
        found = top_k(query[None], keys, min(count + 1, len(keys)))[1][0].tolist()
        return [words[row] for row in found if row != itself][:count]

    return {
        "source": near(x[word], x, names[0], word),
        "target": near(z[translation], z, names[1], translation),
        "aligned": near(x[word], both, labels, word),
    }
