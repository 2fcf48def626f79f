"""Two embedding spaces and a few known pairs of items: how do the spaces correspond?

The front door of the library, beside the command `isthmus`:

  discover(source, target, pairs)   the rows of two arrays that correspond, and a map between them
  migrate(old, new, pairs)          what to do with a store whose embedding model changes
  fit(method, source, target)       a map fitted to pairs that are known, with its normalisation
  load(path)                        a map that was saved
  encode(texts, model)              texts as vectors
  top_k(queries, keys, k)           the nearest rows, without an array of all pairs

Each is imported when it is first used, so that `import isthmus` and `isthmus --help` start at once.
"""

import importlib
import importlib.metadata
from collections.abc import Sequence
from typing import Any

FRONT_DOOR = {
    "discover": "isthmus.align",
    "migrate": "isthmus.store",
    "fit": "common.alignment",
    "load": "common.alignment",
    "top_k": "common.retrieval",
}


def __getattr__(name: str) -> Any:
    """The functions of the front door, and `__version__`."""
    if name == "__version__":
        return importlib.metadata.version("isthmus")
    if name not in FRONT_DOOR:
        raise AttributeError(f"module 'isthmus' has no attribute '{name}'")
    return getattr(importlib.import_module(FRONT_DOOR[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *FRONT_DOOR, "__version__"])


def encode(texts: Sequence[str], model: str = "minilm", *, max_pieces: int = 256) -> Any:
    """Unit vectors [n, d] of texts, float32.

    They are kept in the cache folder, so that the same texts are not encoded twice, and a call that
    was interrupted goes on where it was stopped.

    Args:
      texts: n texts.
      model: `minilm` or `mpnet`, which are downloaded, or the path of a folder with a BERT or an
        MPNet in Hugging Face's format.
      max_pieces: number of word pieces, special ones included, after which a text is cut.

    Raises:
      UserError: no such encoder, a folder that cannot be read, or a failed download.
    """
    from common.data.packages import cache_dir
    from common.encoders import texts as text_encoders
    from common.errors import local_path

    model = local_path(model)
    return text_encoders.encode(model, list(texts), cache_dir(), max_pieces=max_pieces)
