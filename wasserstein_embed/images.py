"""Images as clouds of points: a siamese network, contrastive, by Sinkhorn or Euclidean distance."""

from pathlib import Path

from ml_collections import ConfigDict

from common.workdir import Workdir


def images(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Under way."""
    raise NotImplementedError


def sweep(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Under way."""
    raise NotImplementedError
