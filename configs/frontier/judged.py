"""Changing the embedding model, judged by relevance: a headline asks for its own article.

  python -m frontier.main --config=configs/frontier/judged.py --workdir=runs/judged

Whether to stay with the old model, to map its store, to let the new model put candidates in order,
or to embed everything again, between five encoders, of which MiniLM and MPNet are siblings. The
articles of BBC news are encoded on first use, in a few minutes of one core, and their 37,549
sentences, which takes MPNet 35 and E5 18 minutes; `--config.collections=articles` leaves them out.
Results: docs/results/frontier/judged.md.
"""

import dataclasses

from ml_collections import ConfigDict

from isthmus.store import remapping


def get_config() -> ConfigDict:
    """Every value of the experiment."""
    config = ConfigDict()
    config.experiment = "judged"  # a file of frontier/experiments
    config.collections = ("articles", "sentences")  # of frontier/judged.py
    config.encoders = ("minilm", "mpnet", "e5", "use", "wordllama")  # of common/encoders/texts.py
    config.known_pairs = (100, 300, 1_000)  # documents that both models have embedded
    config.random_seeds = (0, 1, 2, 3, 4)  # of these documents
    config.remapping = ConfigDict(dataclasses.asdict(remapping.Settings()))

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.collections = ("articles",)
    config.when_quick.encoders = ("minilm_input", "wordllama")  # averages, which take seconds
    config.when_quick.known_pairs = (300,)
    config.when_quick.random_seeds = (0,)
    return config
