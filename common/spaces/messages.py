"""Messages of programs in six languages, each in the spaces of encoders that know the language.

`minilm_messages_en` and `mpnet_messages_en` are sentence vectors of English messages;
`use_messages_ja` and `e5_messages_ja` those of the Japanese translations, and so on. A row's name
is the English message in all spaces, by which rows of two languages are paired.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from common.data.sets import messages
from common.data.sets.messages import COMPLETE, LANGUAGES
from common.data.space import Space
from common.encoders import texts as text_encoders
from common.errors import check_count

LANGUAGES_OF = {"minilm": ("en",), "mpnet": ("en",), "use": LANGUAGES, "e5": LANGUAGES}
SPACES = {
    f"{encoder}_messages_{language}": (encoder, language)
    for encoder, languages in LANGUAGES_OF.items()
    for language in languages
}  # name -> encoder and language
ALIGNED = [name for name in SPACES if name[-2:] in ("en", *COMPLETE)]  # row i is the same message
MAX_PIECES = 128  # of a message that are encoded, special ones included


def load(name: str, cache: Path, max_rows: int | None = None) -> Space:
    """Returns the first messages, or all, in one space; raises as `sentences.load`."""
    encoder, language = SPACES[name]
    english, texts, _ = messages.load(language, cache)
    num_rows = len(texts[:max_rows])
    # Whole shards, so that those of a smaller number serve a larger one.
    rounded = -(-num_rows // text_encoders.SHARD_TEXTS) * text_encoders.SHARD_TEXTS
    vectors = text_encoders.encode(encoder, texts[:rounded], cache, max_pieces=MAX_PIECES)
    return Space(english[:num_rows], vectors[:num_rows])


def load_classified(
    names: Sequence[str], num_rows: int, cache: Path
) -> tuple[Int[np.ndarray, " n"], list[Float[np.ndarray, "n d"]]]:
    """The classes, of `PROGRAMS`, of the first messages of all spaces, and their vectors."""
    found = [messages.load(SPACES[name][1], cache) for name in names]
    rows = [{text: row for row, text in enumerate(x.english)} for x in found]
    shared = [text for text in found[0].english if all(text in row_of for row_of in rows)]
    of = f"messages that {' and '.join(names)} share"
    check_count("The number of all texts", num_rows, len(shared), of)
    places = [[row_of[text] for text in shared[:num_rows]] for row_of in rows]
    vectors = [
        load(name, cache, max(place) + 1).vectors[place]
        for name, place in zip(names, places, strict=True)
    ]
    return found[0].programs[places[0]], vectors
