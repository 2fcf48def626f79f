"""GOAT, graph matching by optimal transport from five known pairs: ours and graspologic's."""

import numpy as np

from benchmarks import unpaired
from benchmarks.harness import Case, Implementation
from benchmarks.unpaired import FAR, RANDOM_SEED, orthogonal
from common.linear import procrustes
from isthmus.search import goat

load, work, score = unpaired.load, unpaired.work, unpaired.score
NUM_PAIRS = 5
SETTINGS = goat.Settings()


def _ours(problem):
    pairs = problem.source_pairs, problem.target_pairs
    given = problem.source, problem.target, pairs, SETTINGS
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


TITLE = f"GOAT from {NUM_PAIRS} known pairs, glove100 to word2vec"
GOAL = ">= 1 at equal or better P@1"
NOTE = (
    "The other words are in unknown order. Both start from the unit rows, compute the products "
    "of all pairs, and fit an orthogonal map to the assignment found. P@1: by CSLS in its "
    "coordinates. The steps, their tolerance and the regularisation are the same; ours makes "
    f"{SETTINGS.iterations} Sinkhorn iterations in each step, in float32, graspologic as many "
    "as its tolerance asks for, in float64. FLOPs: a single matching of all words, 4 n^2 d."
)
CASES = (
    Case("glove100-word2vec-500", 500, (*FAR, 500, NUM_PAIRS), rounds=3),
    Case("glove100-word2vec-1000", 1_000, (*FAR, 1_000, NUM_PAIRS), rounds=3),
)
QUICK = Case("glove100-word2vec-200", 200, (*FAR, 200, NUM_PAIRS))
IMPLEMENTATIONS = {
    "isthmus": Implementation(_ours),
    "graspologic": Implementation(_graspologic, requires=("graspologic.match",), warm_up=False),
}
