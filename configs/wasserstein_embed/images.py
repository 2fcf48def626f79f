"""Images as clouds of points, the MNIST report (Ghermi) after Frogner et al. 2019."""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Values with their source: "report", its text; "code", what was published with it."""
    config = ConfigDict()
    config.experiment = "images"  # the function of wasserstein_embed/experiments.py
    config.signed = ("mean",)  # values that may be negative

    # Data: mnist_5k (comes along), or an image set of the TFDS catalogue: mnist, fashion_mnist
    config.dataset = "mnist_5k"
    config.idx = ""  # folder of that set's four IDX files, in the place of TFDS
    config.train_split = ""  # in TFDS's notation; "": 4,000 images of mnist_5k, else 'train'
    config.test_split = ""  # "": the other 1,000, else 'test'
    config.mean = 0.1307  # of the pixels, from 0 to 1; code
    config.std = 0.3081  # code

    # The embedding
    config.points = 3  # M; report
    config.dimensions = 2  # k; report
    config.weights = "uniform"  # of the points; report; or 'learned'
    config.distance = ConfigDict()
    config.distance.ground = "euclidean"  # or 'manhattan'
    config.distance.p = 2.0  # code: squared ground cost, and no root of the value
    config.distance.epsilon = 1.0  # lambda; code
    config.distance.iterations = 20  # code
    config.distance.value = "cost"  # <P, C>; code; or 'regularised', 'divergence'
    config.distance.implicit = False  # gradients through the iterations; code
    # Distances trained with: 'sinkhorn', or 'euclidean' of the cloud as one vector of k M numbers
    config.methods = ("sinkhorn", "euclidean")
    config.random_seeds = (0,)  # of the parameters and the pairs

    # Training
    config.margin = 0.6  # code
    config.batch = 128  # pairs, half of them of one class; code
    config.steps = 800  # what five minutes have room for; code: 10 epochs of 60,000 images, 4,690
    config.learning_rate = 1e-3  # Adam; code
    config.decay_after = 0.8  # share of the steps, then a tenth; code: after 8 of 10 epochs
    config.evaluate_every = 100  # steps; also between checkpoints

    # Evaluation
    config.test_pairs = 10_000  # half of them of one class; code
    config.neighbours = 50  # of the classifier; code
    config.figure_class = 4  # of the nine images; report

    config.quick = False  # the whole path on less: these values take the place of those above
    config.when_quick = ConfigDict()
    config.when_quick.steps = 20
    config.when_quick.evaluate_every = 10
    config.when_quick.batch = 64
    config.when_quick.test_pairs = 500
    config.when_quick.random_seeds = (0,)
    config.when_quick.train_split = "train[:500]"
    config.when_quick.test_split = "test[2400:]"
    return config
