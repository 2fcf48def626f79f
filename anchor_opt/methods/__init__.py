"""Every method as one function: a problem and a run in, anchors of the target space out.

`METHODS` maps the names of config.methods to them; a new method is a function and a line there.
"""

import dataclasses
from collections.abc import Callable, Iterable
from functools import partial

from anchor_opt.methods import algorithm1, baselines, bootstrap, disjoint, unpaired
from anchor_opt.methods.algorithm1 import Settings as Algorithm1
from anchor_opt.methods.baselines import IteratedProcrustes
from anchor_opt.methods.disjoint import Settings as Disjoint
from anchor_opt.methods.goat import Settings as Goat
from anchor_opt.methods.initialization import Settings as Initialization
from anchor_opt.methods.search import Steps as Bootstrap
from anchor_opt.methods.unpaired import MiniVec2Vec, Rosetta
from anchor_opt.problem import Problem, Result, Run


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of every method; None for methods that are not run."""

    k: int = 10  # list length of the MRR that is logged over the steps
    bootstrap: Bootstrap = dataclasses.field(default_factory=Bootstrap)
    start: Initialization = dataclasses.field(default_factory=Initialization)
    disjoint: Disjoint = dataclasses.field(default_factory=Disjoint)
    algorithm1: Algorithm1 | None = None
    iterated_procrustes: IteratedProcrustes | None = None
    mini_vec2vec: MiniVec2Vec = dataclasses.field(default_factory=MiniVec2Vec)
    rosetta: Rosetta = dataclasses.field(default_factory=Rosetta)
    goat: Goat = dataclasses.field(default_factory=Goat)


METHODS: dict[str, Callable[[Problem, Run], Result]] = {
    "gt": baselines.gt,
    "seed": baselines.seed,
    "algorithm1_printed": algorithm1.run_as_printed,
    "algorithm1": algorithm1.run,
    "bootstrap": bootstrap.run,
    "disjoint": disjoint.run,
    "lstsq_truth": baselines.lstsq_truth,
    "procrustes": baselines.procrustes,
    "iterated_procrustes": baselines.iterated_procrustes,
    **{name: partial(unpaired.run, name) for name in unpaired.METHODS},
}
NEED_PAIRS = ("seed", "procrustes", "iterated_procrustes")
READ_TRUTH = ("gt", "lstsq_truth")


def usable(names: Iterable[str], num_pairs: int) -> tuple[str, ...]:
    """The names of those methods that can be run with so many known pairs."""
    return tuple(name for name in names if num_pairs or name not in NEED_PAIRS)
