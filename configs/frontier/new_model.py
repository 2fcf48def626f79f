"""Changing the embedding model of a vector store without embedding its texts again.

  python -m frontier.main --config=configs/frontier/new_model.py --workdir=runs/new_model

A store of 20,000 sentences by one encoder is mapped into the space of another, from 100 to 10,000
sentences that both have embedded; 2,000 other sentences are the queries. With fewer pairs, such as
--config.known_pairs=0,15, rows of both are matched first, in minutes. The three encoders are
no siblings of MiniLM, as --config.pairs=minilm_sentences:mpnet_sentences are. All sentences are
encoded on first use, which takes E5 11 and MPNet 20 minutes of one core, and is kept in the
cache. Results: docs/results/frontier/new_model.md.
"""

import dataclasses

from ml_collections import ConfigDict

from isthmus.store import remapping


def get_config() -> ConfigDict:
    """Every value of the experiment."""
    config = ConfigDict()
    config.experiment = "new_model"  # a file of frontier/experiments
    config.pairs = (  # in both directions, see spaces.py
        "e5_sentences:minilm_sentences",
        "use_sentences:minilm_sentences",
        "wordllama_sentences:minilm_sentences",
    )
    config.num_rows = 20_000  # vectors in the store
    config.num_queries = 2_000  # other items
    # And all of the store, as the reference.
    config.known_pairs = (100, 300, 1_000, 3_000, 10_000)
    config.search_rows = 5_000  # of both models, in unknown order, with fewer than 100 pairs
    config.max_rows = 10_000  # rows that are read of a file, or more if needed
    config.random_seeds = (0, 1, 2, 3, 4)  # of the store, the pairs and the search
    config.remapping = ConfigDict(dataclasses.asdict(remapping.Settings()))

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.pairs = ("glove:glove100",)
    config.when_quick.num_rows = 2_000
    config.when_quick.num_queries = 200
    config.when_quick.known_pairs = (15, 100)
    config.when_quick.search_rows = 1_000
    config.when_quick.random_seeds = (0,)
    return config
