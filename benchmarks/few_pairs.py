"""GOAT, graph matching by optimal transport from five known pairs: ours and graspologic's."""

from functools import partial

import numpy as np

from anchor_opt.methods import goat
from benchmarks.harness import Benchmark, Case, Implementation
from benchmarks.unpaired import RANDOM_SEED, load, orthogonal, score, work
from common.linear import procrustes

NUM_PAIRS = 5
SETTINGS = goat.Settings()


def _ours(problem):
    pairs = problem.source_pairs, problem.target_pairs
    given = problem.source, problem.target, pairs, SETTINGS, RANDOM_SEED
    return lambda: orthogonal(goat.solve(*given))


def _graspologic(problem):
    from graspologic.match import graph_match

    def call():
        spaces = (np.asarray(x, np.float64) for x in (problem.source, problem.target))
        result = graph_match(
            *(x @ x.T for x in spaces),
            partial_match=np.stack([problem.source_pairs, problem.target_pairs], axis=1),
            transport=True,
            transport_regularizer=SETTINGS.inverse_epsilon,
            max_iter=SETTINGS.steps,
            tol=SETTINGS.tolerance,
            rng=RANDOM_SEED,
        )
        matched = problem.source[result.indices_A], problem.target[result.indices_B]
        return orthogonal(procrustes(*matched))

    return call


def case(n: int, **options) -> Case:
    """A case of the n most frequent common words."""
    return Case(
        f"glove100-word2vec-{n}",
        n,
        partial(load, "glove100", "word2vec", n, NUM_PAIRS),
        work,
        **options,
    )


BENCHMARK = Benchmark(
    title=f"GOAT from {NUM_PAIRS} known pairs, glove100 to word2vec",
    goal=">= 1 at equal or better P@1",
    note=(
        "The other words are in unknown order. Both start from the unit rows, compute the products "
        "of all pairs, and fit an orthogonal map to the assignment found. P@1: by CSLS in its "
        "coordinates. The steps, their tolerance and the regularisation are the same; ours makes "
        f"{SETTINGS.iterations} Sinkhorn iterations in each step, in float32, graspologic as many "
        "as its tolerance asks for, in float64. FLOPs: a single matching of all words, 4 n^2 d."
    ),
    cases=(case(500, rounds=3), case(1_000, rounds=3)),
    quick=case(300, rounds=1),
    implementations={
        "isthmus": Implementation(_ours),
        "graspologic": Implementation(_graspologic, requires=("graspologic.match",), warm_up=False),
    },
    score=score,
    axis="words",
)
