"""The most frequent Italian, German and Spanish words, each encoded alone by USE multilingual."""

from pathlib import Path

from common.data.sets import word_frequency
from common.data.space import Space
from common.encoders import texts as text_encoders

LANGUAGES = {"italian": "it", "german": "de", "spanish": "es"}  # space -> list of words
NUM_WORDS = 20_000
MIN_LETTERS = 2
MAX_PIECES = 128  # of a word that are encoded


def load(name: str, cache: Path) -> Space:
    """Returns the words of one of `LANGUAGES`, most frequent first; raises as `texts.encode`."""
    frequent = word_frequency.most_frequent(LANGUAGES[name], cache)
    words = [word for word in frequent if len(word) >= MIN_LETTERS and word.isalpha()][:NUM_WORDS]
    return Space(words, text_encoders.encode("use", words, cache, max_pieces=MAX_PIECES))
