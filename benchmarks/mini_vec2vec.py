"""mini-vec2vec in torch (Dar 2025, arXiv:2510.02348), as its published notebook goes about it.

Cluster centres by scikit-learn are matched by the 2-opt search of scipy, the best of several; the
rest is torch. Written from the paper and from the steps of the notebook, as the peer of
`anchor_opt.methods.unpaired.mini_vec2vec`, which has the same values. The last step averages two
maps, as in the notebook.
"""

import numpy as np
from anchor_opt.methods.unpaired import MiniVec2Vec
from jaxtyping import Float

from benchmarks.harness import cores


def align(
    x: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, "m e"],
    settings: MiniVec2Vec,
    random_seed: int,
) -> Float[np.ndarray, "d e"]:
    """The map of the source onto the target.

    Args:
      x: unit rows, centred.
      y: likewise.
      settings: of the method.
      random_seed: of draws, clusters and assignments.
    """
    import torch
    from sklearn.cluster import KMeans
    from torch.nn.functional import normalize

    torch.set_num_threads(cores())
    rng = np.random.default_rng(random_seed)
    source, target = torch.from_numpy(x), torch.from_numpy(y)

    def fit(a, b):
        left, _, right = torch.linalg.svd(a.T @ b, full_matrices=False)
        return left @ right

    def neighbour_means(queries, keys):
        nearest = (normalize(queries) @ normalize(keys).T).topk(count, dim=1).indices
        return target[nearest].mean(dim=1)

    def centres_of(rows, clusters, init="k-means++"):
        seed = int(rng.integers(2**31))
        clustering = KMeans(clusters, init=init, n_init=1, random_state=seed).fit(rows)
        return clustering.cluster_centers_.astype(np.float32)

    draws = [_matched_centres(x, y, centres_of, settings, rng) for _ in range(settings.num_draws)]
    anchors = [torch.from_numpy(np.concatenate(side)) for side in zip(*draws, strict=True)]
    described = [
        normalize(z) @ normalize(a).T for z, a in zip((source, target), anchors, strict=True)
    ]
    count = min(settings.neighbours, len(y))
    mapped = fit(source, neighbour_means(*described))
    for _ in range(settings.steps):
        some = source[torch.from_numpy(rng.permutation(len(x))[: settings.step_rows])]
        mapped = (mapped + fit(some, neighbour_means(some @ mapped, target))) / 2
    clusters = min(settings.last_clusters, min(len(x), len(y)) // 2)
    first = torch.from_numpy(centres_of(x, clusters))
    second = torch.from_numpy(centres_of(y, clusters, (first @ mapped).numpy()))
    return ((mapped + fit(first, second)) / 2).numpy()


def _matched_centres(x, y, centres_of, settings, rng):
    """Centres of a draw of both spaces, row i of both matched."""
    from scipy.optimize import quadratic_assignment

    first, second = (
        centres_of(z[rng.permutation(len(z))[: settings.draw_rows]], settings.num_clusters)
        for z in (x, y)
    )
    kernels = [centred @ centred.T for centred in (c - c.mean(axis=0) for c in (first, second))]
    options = {"maximize": True, "rng": rng}
    restarts = [
        quadratic_assignment(*kernels, method="2opt", options=options)
        for _ in range(settings.num_restarts)
    ]
    return first, second[max(restarts, key=lambda restart: restart.fun).col_ind]
