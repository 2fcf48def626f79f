"""ImageNet's 1,000 classes as classifiers of images and as encoders of texts represent them.

`classes_efficientnet_lite0` and `classes_efficientnet_lite2`: the weights of a class in the last
layer, with which a classifier multiplies the features of an image. `classes_ENCODER`, for an
encoder of texts by name: the vector of the text "NAMES: DEFINITION" of WordNet. Row i is the same
class in all spaces; the items are named by WordNet's synsets.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Float

from common.data.packages import PACKAGES, read_member
from common.data.readers import torch_file
from common.data.sets import imagenet_classes
from common.data.space import Space
from common.encoders import texts as text_encoders
from common.errors import check_choice
from common.spaces.image_features import ENCODERS as CLASSIFIERS

PREFIX = "classes_"
OF_IMAGES = ("efficientnet_lite0", "efficientnet_lite2")  # trained to tell the classes apart
OF_TEXTS = ("glove", "word2vec", "wordllama", "minilm", "mpnet")
SPACES = tuple(PREFIX + name for name in (*OF_IMAGES, *OF_TEXTS))
MAX_PIECES = 128  # word pieces of a text; no text has more


def load(name: str, cache: Path, max_rows: int | None = None) -> Space:
    """Returns the first classes with their vectors in one space.

    Args:
      name: one of `SPACES`.
      cache: the cache directory.
      max_rows: number of classes; None: all 1,000.

    Raises:
      UserError: an unknown name, or a package that cannot be fetched.
    """
    check_choice("space of classes", name, SPACES)
    classes, encoder = imagenet_classes.load(cache), name.removeprefix(PREFIX)
    if encoder in OF_IMAGES:
        vectors = class_weights(encoder, cache)
    else:
        texts = [": ".join(pair) for pair in zip(classes.names, classes.definitions, strict=True)]
        vectors = text_encoders.encode(encoder, texts, cache, max_pieces=MAX_PIECES)
    return Space(classes.synsets[:max_rows], vectors[:max_rows])


def class_weights(name: str, cache: Path) -> Float[np.ndarray, "1000 d"]:
    """The weights of the classes in the last layer of a classifier, one of `OF_IMAGES`."""
    classifier = CLASSIFIERS[name]
    content = read_member(PACKAGES[classifier.package], cache, classifier.member)
    return torch_file.read(content, classifier.member)["_fc.weight"].astype(np.float32)
