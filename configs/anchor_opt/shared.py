"""Groups of values that several experiments have, with their source; not an experiment.

T3 is the Table 3 of the paper; "measured" is in docs/results/frontier/constants.md.
"""

import dataclasses
from typing import Any

from isthmus import search as isthmus_search
from isthmus.search import initialization


def task() -> dict[str, Any]:
    """The anchors, the known pairs and the metrics."""
    return {
        "num_anchors": 300,  # T3
        "num_pairs": 15,  # T3; known pairs among the anchors; 0: from the two geometries alone
        "random_seeds": (0, 1, 2, 3, 4),  # T3; of anchors, shuffle and methods
        "k": 10,  # list length of Jaccard and MRR (paper, Table 4)
        "quick": False,  # the values of when_quick replace others in a quick run
    }


def search() -> dict[str, Any]:
    """Our search and its starts without known pairs; values are commented where they stand."""
    return {
        "bootstrap": dataclasses.asdict(isthmus_search.Steps()),
        "start": dataclasses.asdict(initialization.Settings()),
    }


def methods() -> dict[str, Any]:
    """Algorithm 1, our search, and a baseline."""
    algorithm1 = {
        "steps": 250,  # T3
        "learning_rate": 0.02,  # T3; Adam
        "sinkhorn_epsilon": 1e-4,  # T3; its stop error has no effect at 1 iteration
        "sinkhorn_iterations": 1,  # T3
        "permute": "source",  # the rows permuted: 'source' (eq. 1), 'target' (line 6)
        "plan": "hard",  # 'hard': argmax of the plan; 'soft': its weighted mean
        "freeze_pairs": False,  # whether the anchors in known pairs are held constant
        "init_norm": 0.01,  # of the random anchors at first; T3: 1
        "tied_steps": 0,  # first steps, in which one orthogonal map moves all anchors
        "sphere_from": 150,  # step from which anchors have unit norm; T3: 0
    }
    iterated_procrustes = {"iterations": 5, "neighbours": 10}  # Lample et al. 2018
    return {"algorithm1": algorithm1, "iterated_procrustes": iterated_procrustes, **search()}
