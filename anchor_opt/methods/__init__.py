"""Every method as one function: a problem and a run in, anchors of the target space out.

`METHODS` maps the names of config.methods to them; a new method is a function and a line there.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from anchor_opt.methods import algorithm1, baselines, bootstrap, readings
from anchor_opt.methods.baselines import IteratedProcrustes
from anchor_opt.methods.readings import Settings as Algorithm1
from anchor_opt.problem import Problem, Result, Run
from common.errors import check_choice
from isthmus.search import Steps as Bootstrap
from isthmus.search.goat import Settings as Goat
from isthmus.search.initialization import Settings as Initialization


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of every method; None for methods that are not run."""

    k: int = 10  # neighbours in the lists of the metrics
    bootstrap: Bootstrap = dataclasses.field(default_factory=Bootstrap)
    start: Initialization = dataclasses.field(default_factory=Initialization)
    algorithm1: Algorithm1 | None = None
    iterated_procrustes: IteratedProcrustes | None = None
    goat: Goat = dataclasses.field(default_factory=Goat)


class Method(NamedTuple):
    """A function that solves a problem, and what it has to be given."""

    run: Callable[[Problem, Run], Result]
    needs_pairs: bool = False  # whether it cannot be run without known pairs
    reads_truth: bool = False  # whether it is a reference that is given the true pairing


METHODS = {
    "gt": Method(baselines.gt, reads_truth=True),
    "seed": Method(baselines.seed, needs_pairs=True),
    "algorithm1_printed": Method(algorithm1.run_as_printed),
    "algorithm1": Method(readings.run),
    **{
        f"algorithm1_{form}": Method(partial(readings.run_in_form, form=form))
        for form in readings.FORMS
    },
    "bootstrap": Method(bootstrap.run),
    "lstsq_truth": Method(baselines.lstsq_truth, reads_truth=True),
    "procrustes": Method(baselines.procrustes, needs_pairs=True),
    "iterated_procrustes": Method(baselines.iterated_procrustes, needs_pairs=True),
}


def chosen(
    names: Iterable[str], num_pairs: int, known: Mapping[str, Method] = METHODS
) -> dict[str, Method]:
    """The methods of these names, without those that need known pairs if there are none."""
    for name in names:
        check_choice("method", name, known)
    return {name: known[name] for name in names if num_pairs or not known[name].needs_pairs}
