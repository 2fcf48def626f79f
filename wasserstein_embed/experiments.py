"""The experiments by name; each takes (config, work, cache), returns the table for the terminal."""

from wasserstein_embed.graphs import graphs
from wasserstein_embed.images import images, sweep
from wasserstein_embed.words import words

EXPERIMENTS = {
    "graphs": graphs,
    "images": images,
    "words": words,
    "sweep_points": sweep,
    "sweep_dimensions": sweep,
    "sweep_epsilon": sweep,
}
