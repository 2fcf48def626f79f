r"""Images as clouds of points: the MNIST report (Ghermi) after Frogner et al. 2019.

  python -m wasserstein_embed.main --config=configs/wasserstein_embed/images.py \
    --workdir=runs/images

Trains on the whole of MNIST for ten epochs, as the report does; about half an hour on one core.
With 5,000 digits, --config.dataset=mnist_5k --config.steps=800 --config.evaluate_every=100, it
takes three minutes on two cores. Results: docs/results/wasserstein_embed/images.md.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Every value with its source: "report", its text; "code", the code published with it."""
    config = ConfigDict()
    config.experiment = "images"  # a file of wasserstein_embed/experiments

    # Data
    # The whole of MNIST (70,000 digits); or fashion_mnist, as many images of clothes; or mnist_5k,
    # 5,000 digits; or the path of a folder with four IDX files; or a set of the TFDS catalogue.
    config.dataset = "mnist"
    config.train_split = ""  # in TFDS's notation; "": 4,000 images of mnist_5k, else 'train'
    config.test_split = ""  # "": the other 1,000 images, else 'test'
    config.pixel_mean = 0.1307  # of pixels from 0 to 1; code
    config.pixel_std = 0.3081  # code

    # Embedding
    config.num_points = 3  # M; report
    config.dimensions = 2  # k; report
    config.weights = "uniform"  # of the points; report; or 'learned'
    config.distance = ConfigDict()
    config.distance.ground = "euclidean"  # or 'manhattan'
    config.distance.p = 2.0  # code: squared ground distance, and no root of the value
    config.distance.epsilon = 1.0  # lambda; code
    config.distance.iterations = 20  # code
    # <P, C>; code; or 'entropic_cost', 'sinkhorn_divergence'
    config.distance.value = "transport_cost"
    config.distance.implicit_diff = False  # gradients through the iterations; code
    # Distance of the training: 'sinkhorn', or 'euclidean' between vectors of k M numbers; or
    # 'cosine', the loss of SimCLR with known classes, on unit vectors of as many numbers
    config.methods = ("sinkhorn", "euclidean")
    config.random_seeds = (0,)  # of the parameters and the batches

    # Training
    config.margin = 0.6  # code
    config.temperature = 0.1  # of the method 'cosine' (Khosla et al. 2020, section 4)
    config.loss_power = (
        2.0  # of distances in the contrastive loss; code; 1: section 4.1 of the report
    )
    config.batch_size = 128  # pairs, half of them of one class; code
    config.steps = 4_690  # 10 epochs of 60,000 images; code
    config.learning_rate = 1e-3  # of Adam; code
    config.decay_after = 0.8  # of the steps; then a tenth of the rate; code: 8 of 10 epochs
    config.evaluate_every = 469  # steps, also between checkpoints; one epoch

    # Evaluation
    config.num_test_pairs = 10_000  # half of them of one class; code
    config.num_neighbours = 50  # of the classifier; code
    config.figure_class = 4  # of the nine images; report

    config.quick = False  # these values replace those above in a quick run
    config.when_quick = ConfigDict()
    config.when_quick.dataset = "mnist_5k"
    config.when_quick.steps = 4
    config.when_quick.evaluate_every = 2
    config.when_quick.batch_size = 64
    config.when_quick.num_test_pairs = 500
    config.when_quick.random_seeds = (0,)
    config.when_quick.train_split = "train[:500]"
    config.when_quick.test_split = "test[2400:]"
    return config
