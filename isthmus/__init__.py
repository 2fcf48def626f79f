"""Two embedding spaces and a few known pairs of items: how do the spaces correspond?

The front door of the library, beside the command `isthmus`:

  discover(source, target, pairs)   the rows of two arrays that correspond, and a map between them
  migrate(old, new, pairs)          what to do with a store whose embedding model changes
  check(stored, again, pairs)       whether a store and a kept map are still right
  fit(method, source, target)       a map fitted to pairs that are known, with its normalisation
  load(path)                        a map that was saved
  encode(texts, model)              texts as vectors
  top_k(queries, keys, k)           the nearest rows, without an array of all pairs
  explore(result, source, target, path)  a web page with both spaces, to search and to click

Each is imported when it is first used, so that `import isthmus` and `isthmus --help` start at once.
"""

import importlib
import importlib.metadata
from collections.abc import Sequence
from typing import Any

FRONT_DOOR = {
    "discover": "isthmus.align.discovery",
    "migrate": "isthmus.store.migration",
    "check": "isthmus.store.check",
    "fit": "common.alignment",
    "load": "common.aligner",
    "top_k": "common.retrieval",
    "explore": "isthmus.align.report",
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


def encode(texts: Sequence[str], model: str = "minilm", *, max_pieces: int | None = None) -> Any:
    """Unit vectors [n, d] of texts, float32.

    They are kept in the cache folder, so that the same texts are not encoded twice, and a call that
    was interrupted goes on where it was stopped.

    Args:
      texts: n texts.
      model: `minilm`, `mpnet`, or of many languages `use` or `e5`, which are downloaded; or the
        path of a folder with a BERT or an MPNet in Hugging Face's format. `e5` takes a text as a
        passage unless it begins with "query: ".
      max_pieces: number of word pieces, special ones included, after which a text is cut; None: the
        model's own maximum.
    """
    from common.data.packages import cache_dir
    from common.encoders import texts as text_encoders
    from common.errors import local_path

    model = local_path(model)
    texts = texts if isinstance(texts, str) else list(texts)  # one text is refused
    return text_encoders.encode(model, texts, cache_dir(), max_pieces=max_pieces)
