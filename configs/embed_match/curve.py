"""Distance against matching accuracy, for embeddings that are trained longer or shorter.

  python -m embed_match.main --config=configs/embed_match/curve.py --workdir=runs/curve

The poster states neither epochs nor learning rates. This run measures the pairs of its Table 1 for
several of them, one training each, and draws `curve.png` with the poster's four points. It takes
about 15 minutes on one core. Results: docs/results/embed_match/match.md.
"""

from ml_collections import ConfigDict

from configs.embed_match import match

EPOCHS = (1, 5, 10, 20)  # of GloVe; 40 in match.py
RATES = (3, 5, 10)  # thousandths, of fine-tuning by the LSTM; 1 in match.py


def get_config() -> ConfigDict:
    """Every value with its source; the others are in configs/embed_match/match.py."""
    config = match.get_config()
    pairs = ["C1-C2", "G1-G2", "C1-G1", "LSTM-C1"]
    # One epoch of CBOW instead of five.
    for name in ("C1", "C2"):
        own = config.models[name].to_dict()
        config.models[f"{name}e1"] = ConfigDict(own | {"epochs": 1})
    pairs += ["C1e1-C2e1", "C1e1-G1"]
    for epochs in EPOCHS:
        for name in ("G1", "G2"):
            own = config.models[name].to_dict()
            own |= {"steps": max(1, epochs // 5), "epochs_per_step": min(5, epochs)}
            config.models[f"{name}e{epochs}"] = ConfigDict(own)
        pairs += [f"G1e{epochs}-G2e{epochs}", f"C1-G1e{epochs}"]
    for rate in RATES:
        own = config.models.LSTM.to_dict() | {"learning_rate": rate / 1_000}
        config.models[f"LSTM{rate}"] = ConfigDict(own)
        pairs.append(f"LSTM{rate}-C1")
    config.pairs = tuple(pairs)
    config.random_seeds = (0,)

    config.when_quick.pairs = ("C1-C2", "G1e1-G2e1", "LSTM10-C1")
    config.when_quick.random_seeds = (0,)
    return config
