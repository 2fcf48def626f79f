"""The 1,000 classes of ImageNet as WordNet names and defines them."""

from pathlib import Path
from typing import NamedTuple

from common.data.packages import PACKAGES, read_member

FOLDER = "timm/data/_info"


class Classes(NamedTuple):
    """The classes in the order in which classifiers number them.

    Synsets are "n01440764" for instance, names "tench, Tinca tinca"; two classes may have the same.
    """

    synsets: list[str]
    names: list[str]
    definitions: list[str]


def load(cache: Path) -> Classes:
    """Returns the classes; raises a UserError if their package cannot be fetched."""

    def lines(name):
        return read_member(PACKAGES["timm"], cache, f"{FOLDER}/{name}.txt").decode().splitlines()

    synsets = lines("imagenet_synsets")
    names, definitions = (
        dict(line.split("\t", 1) for line in lines(f"imagenet_synset_to_{kind}"))
        for kind in ("lemma", "definition")
    )
    return Classes(synsets, [names[s] for s in synsets], [definitions[s] for s in synsets])
