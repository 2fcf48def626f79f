"""The methods of the paper, and those for few known pairs, for none, and for disjoint samples."""

import dataclasses

from anchor_opt import methods
from anchor_opt.methods import Method
from frontier.methods import disjoint, published, spectral, truth
from frontier.methods.published import MiniVec2Vec, Rosetta
from frontier.methods.spectral import Settings as Spectral
from isthmus.search.disjoint import Settings as Disjoint


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(methods.Settings):
    """Values of every method."""

    disjoint: Disjoint = dataclasses.field(default_factory=Disjoint)
    mini_vec2vec: MiniVec2Vec = dataclasses.field(default_factory=MiniVec2Vec)
    rosetta: Rosetta = dataclasses.field(default_factory=Rosetta)
    spectral: Spectral = dataclasses.field(default_factory=Spectral)


METHODS = {
    **methods.METHODS,
    "disjoint": Method(disjoint.run),
    "mini_vec2vec": Method(published.run_mini_vec2vec),
    "rosetta": Method(published.run_rosetta),
    "goat": Method(published.run_goat),
    "spectral": Method(spectral.run, needs_pairs=True),
    "orthogonal_truth": Method(truth.orthogonal, reads_truth=True),
}
