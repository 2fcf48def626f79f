"""Several encoders in common coordinates: can one store hold the vectors of all of them?

  python -m anchor_opt.main --config=configs/anchor_opt/joined.py --workdir=runs/joined

MiniLM, MPNet and WordLlama on headlines and articles of BBC news. The texts are encoded on first
use, which takes about two hours of one core, most of it for MPNet's vectors of the sentences;
`--config.collections=articles` leaves these out. Results: docs/results/anchor_opt/joined.md.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Every value of the experiment."""
    config = ConfigDict()
    config.experiment = "joined"  # a file of anchor_opt/experiments
    config.collections = ("articles", "sentences")  # of common/spaces/judged.py
    config.encoders = ("minilm", "mpnet", "wordllama")  # two or more of common/encoders/texts.py
    config.known_pairs = ConfigDict()  # documents that all encoders have embedded
    config.known_pairs.articles = (300, 1_000)
    config.known_pairs.sentences = (1_000, 10_000)
    config.random_seeds = (0, 1, 2, 3, 4)  # of these documents, and of the mixed store

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.collections = ("articles",)
    config.when_quick.encoders = (
        "minilm_input",
        "wordllama",
        "glove",
    )  # averages, which take seconds
    config.when_quick.known_pairs = ConfigDict({"articles": (300,)})
    config.when_quick.random_seeds = (0,)
    return config
