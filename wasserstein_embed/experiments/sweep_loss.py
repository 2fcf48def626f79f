"""Power of the distances in the contrastive loss: the images experiment with each of its values."""

from wasserstein_embed.experiments import images

run = images.sweep
