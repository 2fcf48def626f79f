"""Nodes of a graph embedded so that distances are those of shortest paths (Frogner et al. 2019)."""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Values with their source; "reference" is the public code whose table ours stands beside."""
    config = ConfigDict()
    config.experiment = "graphs"  # a name of wasserstein_embed/experiments.py
    config.signed = ("init",)  # values that may be negative

    # Graphs: scale_free, small_world, block, tree, cycle, or a path: a list of edges, or .gml,
    # .graphml, .gexf, .net, .adjlist, .g6. Of a file the random starts alone differ.
    config.graph = "scale_free"  # reference
    config.num_graphs = 10  # reference
    config.num_nodes = 64  # reference
    config.attach = 2  # scale_free (Barabasi-Albert): edges of a new node; reference
    config.ring = 4  # small_world (Watts-Strogatz): neighbours on the ring
    config.rewire = 0.1  # small_world: share of edges that are moved
    config.blocks = 4  # block: communities
    config.within = 0.3  # block: probability of an edge inside a community
    config.between = 0.02  # block: probability of one between two
    config.largest_component = False  # of a file's graph that is in pieces

    # Embeddings
    config.methods = ("euclidean", "hyperbolic", "kl", "wasserstein")
    config.recipes = ("reference", "tuned")  # the two below
    # k: clouds of M points are M k numbers; 4 too for a third more time.
    config.cloud_dimensions = (2, 3)
    # M; the reference's table goes on with 20, 30, 40.
    config.points = (2, 5, 10)
    config.dimensions = (2, 4, 5, 10, 20, 30, 40)  # of vectors

    # Full-batch steps of Adam, multiples of ten. The reference does not state its own.
    config.steps = ConfigDict({"vectors": 2_000, "clouds": 1_000})

    # The reference's settings; p = 1.
    config.reference = ConfigDict()
    config.reference.euclidean = _training((0.0, 1.0), 0.1)
    config.reference.hyperbolic = _training((-1e-3, 1e-3), 0.01)
    config.reference.kl = _training((0.0, 1.0), 0.01)
    config.reference.wasserstein = _training(
        (0.0, 1.0),
        0.1,
        epsilon=(1.0, 1.0),  # lambda, at the first and the last step
        debiased=False,  # <P, C>
        # Of Sinkhorn; reference: at most 20 from nothing. Three from the last step's potentials do
        # as well in a third of the time: iterations=20, carry=False gave .142, .098, .103 at 2, 5,
        # 10 points in R^2, measured. The distances of the table are by 20 from nothing.
        iterations=3,
        carry=True,
    )

    # Ours, measured: learning rates fall to zero, of clouds lambda falls too.
    config.tuned = ConfigDict()
    config.tuned.euclidean = _training((0.0, 4.0), 0.3, "cosine")
    config.tuned.hyperbolic = _training((-1e-3, 1e-3), 0.03, "cosine")
    config.tuned.wasserstein = _training(
        (0.0, 4.0), 1.0, "cosine", epsilon=(0.3, 0.05), debiased=True, iterations=3, carry=True
    )

    config.chunk = 50  # tens of steps between checkpoints
    # Of Sinkhorn, in the log domain and from nothing, where the table's distances are measured.
    config.measure_iterations = ConfigDict({"reference": 20, "tuned": 200})

    config.quick = False  # the whole path on less: these values take the place of those above
    config.when_quick = ConfigDict()
    config.when_quick.num_graphs = 2
    config.when_quick.steps = ConfigDict({"vectors": 100, "clouds": 100})
    config.when_quick.points = (2, 5)
    config.when_quick.dimensions = (10,)
    config.when_quick.cloud_dimensions = (2,)
    return config


def _training(
    init: tuple[float, float], learning_rate: float, schedule: str = "constant", **transport
) -> ConfigDict:
    values = {"init": init, "learning_rate": learning_rate, "schedule": schedule}
    return ConfigDict(values | transport)
