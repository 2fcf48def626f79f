"""Retrieval across image encoders: Table 7 of the anchor optimisation paper.

  python -m anchor_opt.main --config=configs/anchor_opt/vision.py --workdir=runs/vision

Three pretrained encoders of 2,000 of the 10,000 test images of Fashion-MNIST: with 10,000 the
methods and random seeds would take many hours on one core. The paper has about 20,000 images of
CIFAR-10 by ViT-base and ViT-small: give files of their features, or of any other encoders.
"""

from ml_collections import ConfigDict

from configs.anchor_opt import shared


def get_config() -> ConfigDict:
    """Values with their source; those of the task and of the methods are in shared.py."""
    config = ConfigDict({**shared.task(), **shared.methods()})
    config.experiment = "vision"

    # Data: mnist_5k, mnist, fashion_mnist or an image set of the TFDS catalogue (paper: cifar10,
    # about 20,000 images)
    config.dataset = "fashion_mnist"
    config.test_split = "test[:2000]"  # the images that are retrieved, of 10,000

    # SOURCE:TARGET: names of pretrained encoders (common/spaces/image_features.py; paper: ViT-base,
    # ViT-small), or paths of files of features, an array [images, d] each
    config.pairs = (
        "efficientnet_lite0:efficientnet_lite2",
        "augnet_resnet50:efficientnet_lite0",
        "augnet_resnet50:efficientnet_lite2",
    )
    config.optimise = ("target",)  # whose anchors are sought

    config.methods = ("gt", "seed", "algorithm1_printed", "algorithm1", "bootstrap", "lstsq_truth")
    config.when_quick = ConfigDict()
    config.when_quick.random_seeds = (0,)
    config.when_quick.pairs = ("efficientnet_lite0:efficientnet_lite2",)
    config.when_quick.test_split = "test[:200]"
    config.when_quick.num_anchors = 60
    config.when_quick.bootstrap = ConfigDict({"search_steps": 30})
    return config
