"""ImageNet's 1,000 classes as classifiers of images and as encoders of texts represent them.

`classes_efficientnet_lite0` and `classes_efficientnet_lite2`: the weights of a class in the last
layer, with which a classifier multiplies the features of an image. `classes_ENCODER`, for an
encoder of texts by name: the vector of the text "NAMES: DEFINITION" of WordNet. Row i is the same
class in all spaces; the items are named by WordNet's synsets.
"""

from pathlib import Path

import numpy as np

from common.data.sets import imagenet_classes
from common.data.space import Space
from common.encoders import texts as text_encoders
from common.spaces import image_features

PREFIX = "classes_"
OF_IMAGES = ("efficientnet_lite0", "efficientnet_lite2")  # trained to tell the classes apart
OF_TEXTS = ("glove", "word2vec", "wordllama", "minilm", "mpnet")
SPACES = tuple(PREFIX + name for name in (*OF_IMAGES, *OF_TEXTS))
MAX_PIECES = 128  # word pieces of a text; no text has more


def load(name: str, cache: Path, max_rows: int | None = None) -> Space:
    """Returns the first classes, or all, with their vectors in one of `SPACES`."""
    classes, encoder = imagenet_classes.load(cache), name.removeprefix(PREFIX)
    if encoder in OF_IMAGES:
        vectors = image_features.read_weights(encoder, cache)["_fc.weight"].astype(np.float32)
    else:
        texts = [": ".join(pair) for pair in zip(classes.names, classes.definitions, strict=True)]
        vectors = text_encoders.encode(encoder, texts, cache, max_pieces=MAX_PIECES)
    return Space(classes.synsets[:max_rows], vectors[:max_rows])
