"""English messages by one encoder and other languages by an independent one, in unknown order.

  python -m frontier.main --config=configs/frontier/languages.py --workdir=runs/languages

Both spaces have the same 4,000 messages of programs, and 0 or 15 pairs are known; the map is judged
on 2,000 other messages. With --config.shared=0 --config.methods=disjoint the English messages are
others than those of the other language. Results: docs/results/frontier/languages.md.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import shared
from configs.frontier import halves


def get_config() -> ConfigDict:
    """Values of halves except for those below, and of the search."""
    config = halves.get_config()
    config.update(shared.search())
    config.pairs = tuple(f"minilm_messages_en:use_messages_{x}" for x in ("ja", "fr"))
    config.half_rows = (4_000,)
    config.known_pairs = (0, 15)
    config.shared = 1.0
    config.methods = ("bootstrap", "mini_vec2vec")
    config.when_quick.pairs = ("minilm_messages_en:use_messages_es",)
    config.when_quick.half_rows = (500,)
    config.when_quick.known_pairs = (15,)
    config.when_quick.methods = ("mini_vec2vec", "bootstrap")  # the first makes the picture too
    return config
