r"""Nodes of graphs embedded so that distances are those of shortest paths (Frogner et al. 2019).

  python -m wasserstein_embed.main --config=configs/wasserstein_embed/graphs.py \
    --workdir=runs/graphs

Takes 20 minutes on one core. --config.graph=tree and the like take other graphs. Results:
docs/results/wasserstein_embed/graphs.md.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Every value with its source: "published", the public code of the experiment."""
    config = ConfigDict()
    config.experiment = "graphs"  # a file of wasserstein_embed/experiments

    # Graphs
    config.graph = "scale_free"  # published; or small_world, block, tree, cycle
    config.num_graphs = 10  # published
    config.num_nodes = 64  # published
    config.graph_options = ConfigDict()
    config.graph_options.scale_free = {"m": 2}  # Barabasi-Albert: edges of a new node; published
    # Watts-Strogatz: neighbours on the ring, probability that an edge is rewired
    config.graph_options.small_world = {"k": 4, "p": 0.1}
    # Stochastic block model: communities, probabilities of an edge inside and between communities
    config.graph_options.block = {"blocks": 4, "p_in": 0.3, "p_out": 0.02}
    config.graph_options.tree = {}
    config.graph_options.cycle = {}

    # Embeddings
    # Hyperbolic vectors are those of the Poincare ball in the published recipe, and have polar
    # coordinates in the tuned one.
    config.methods = ("euclidean", "hyperbolic", "polar_hyperbolic", "kl", "wasserstein")
    config.recipes = ("published", "tuned")  # settings of the training, below
    # k of clouds of M points in R^k, which are M k numbers; adding 4 takes a third more time.
    config.cloud_dimensions = (2, 3)
    config.points = (2, 5, 10)  # M; the published table also has 20, 30 and 40
    config.dimensions = (2, 4, 5, 10, 20, 30, 40)  # of vectors

    # Steps of Adam on all pairs, multiples of ten. The published code makes at most 500, and ends
    # when the loss is less than 1e-4 below its mean of five to fifteen steps before.
    config.steps = ConfigDict({"vectors": 2_000, "clouds": 1_000})

    # The published settings; p = 1.
    config.published = ConfigDict()
    config.published.euclidean = _training((0.0, 1.0), 0.1)
    config.published.hyperbolic = _training((-1e-3, 1e-3), 0.01)
    config.published.kl = _training((0.0, 1.0), 0.01)
    config.published.wasserstein = _training(
        (0.0, 1.0),
        0.1,
        epsilon=(1.0, 1.0),  # lambda, at the first and the last step
        debiased=False,  # <P, C>
        iterations=20,  # of Sinkhorn in each step, each time from the beginning
        warm_start=False,
        implicit=False,  # gradients through the iterations
    )

    # Our settings: learning rates decay to zero, and lambda decays for clouds. Learning rate and
    # initial range are the best of 24 for vectors (polar coordinates: 10) and 12 for clouds: see
    # docs/results/wasserstein_embed/graphs.md.
    config.tuned = ConfigDict()
    config.tuned.euclidean = _training((0.0, 4.0), 0.3, "cosine")
    config.tuned.polar_hyperbolic = _training((-1.0, 1.0), 0.3, "cosine")
    config.tuned.kl = _training((-1e-3, 1e-3), 1.0, "cosine")
    config.tuned.wasserstein = _training(
        (0.0, 4.0), 3.0, "cosine", epsilon=(0.3, 0.05), debiased=True, iterations=3, warm_start=True
    )

    config.checkpoint_every = 50  # tens of steps
    # Sinkhorn iterations, from a cold start, of the distances in the table.
    config.measure_iterations = ConfigDict({"published": 20, "tuned": 200})

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.num_graphs = 2
    config.when_quick.steps = ConfigDict({"vectors": 20, "clouds": 20})
    config.when_quick.points = (2, 5)
    config.when_quick.dimensions = (10,)
    config.when_quick.cloud_dimensions = (2,)
    return config


def _training(
    init_range: tuple[float, float], learning_rate: float, schedule: str = "constant", **transport
) -> ConfigDict:
    values = {"init_range": init_range, "learning_rate": learning_rate, "schedule": schedule}
    return ConfigDict(values | transport)
