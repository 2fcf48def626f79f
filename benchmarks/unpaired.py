"""Two word spaces in unknown order without a known pair: our search, and published methods."""

import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from anchor_opt.problem import Problem, partly_shared
from benchmarks.harness import Case, Implementation, Work
from common import csls
from common.data.packages import cache_dir
from common.linear import apply_maps, polar, preprocess
from common.run.train import Stages
from common.run.workdir import Workdir
from common.spaces import paired_spaces
from isthmus.search import Settings, search
from isthmus.search.self_learning import Data

FAR, NEAR = ("glove100", "word2vec"), ("glove", "glove100")
RANDOM_SEED = 0
NEIGHBOURS = 10  # of CSLS, by which the maps are judged
EPSILON = 5e-4  # of Gromov-Wasserstein, in units of the mean cost; chosen on these spaces
GW_STEPS = 100  # at most; fewer if the plan no longer changes
SINKHORN_STEPS = 1_000  # at most, of each of them; the default of POT


def load(source: str, target: str, n: int, num_pairs: int = 0) -> Problem:
    """The n most frequent common words, with the target's rows shuffled, and known pairs.

    The truth is for the score; every implementation is given the problem without it.
    """
    pair = paired_spaces.load(source, target, num_words=n, cache=cache_dir())
    spaces = (preprocess(jnp.asarray(vectors)) for vectors in (pair.source, pair.target))
    sizes = {"num_rows": n, "shared": 1.0, "num_anchors": num_pairs, "num_pairs": num_pairs}
    return partly_shared(*spaces, **sizes, random_seed=RANDOM_SEED)


def work(problem: Problem) -> Work:
    """One matching of all words in both directions, the least that any method needs."""
    n, dims = len(problem.source), (problem.source.shape[1], problem.target.shape[1])
    return Work(4.0 * n * n * max(dims), 4.0 * n * sum(dims))


def orthogonal(matrix: Float[Array, "d e"]) -> tuple[Array, Array]:
    """The maps of both spaces into the target's coordinates."""
    return jnp.asarray(matrix), jnp.eye(matrix.shape[1])


def score(problem: Problem, maps: tuple[Array, Array]) -> dict[str, float]:
    """The fraction of words whose nearest word of the target, by CSLS, is the same word."""
    spaces = apply_maps((problem.source, problem.target), maps)
    to_target = csls.matches(*spaces, neighbours=NEIGHBOURS).to_target
    return {"P@1": float(np.mean(np.asarray(to_target) == problem.truth))}


def _search(problem):
    data = Data(problem.source, problem.target, *problem.pairs, jax.random.key(RANDOM_SEED))

    def call():
        with tempfile.TemporaryDirectory() as folder:
            train = Stages(Workdir(folder, {}), "bench", progress=False)
            return search(data, None, Settings(), train)[0].maps

    return call


def _costs(spaces, xp):
    """The matrix of 1 - cos of each space's rows, of mean one."""
    distances = (1 - xp.asarray(x) @ xp.asarray(x).T for x in spaces)
    return [one / one.mean() for one in distances]


@jax.jit
def _map_of_plan(plan, source, target):
    return orthogonal(polar(source.T @ plan @ target))


def _pot(problem):
    from ot.gromov import entropic_gromov_wasserstein

    spaces = problem.source, problem.target

    def call():
        options = {"epsilon": EPSILON, "max_iter": GW_STEPS, "numItermax": SINKHORN_STEPS}
        costs = _costs([np.asarray(x, np.float64) for x in spaces], np)
        plan = entropic_gromov_wasserstein(*costs, tol=1e-7, **options)
        return _map_of_plan(jnp.asarray(plan, jnp.float32), *spaces)

    return call


def _ott(problem):
    from ott.geometry.geometry import Geometry
    from ott.problems.quadratic.quadratic_problem import QuadraticProblem
    from ott.solvers.linear.sinkhorn import Sinkhorn
    from ott.solvers.quadratic.gromov_wasserstein import GromovWasserstein

    inner = Sinkhorn(max_iterations=SINKHORN_STEPS)
    solver = GromovWasserstein(inner, epsilon=EPSILON, max_iterations=GW_STEPS)
    spaces = problem.source, problem.target

    @jax.jit
    def plan(*spaces):
        return solver(QuadraticProblem(*map(Geometry, _costs(spaces, jnp)))).matrix

    return lambda: _map_of_plan(plan(*spaces), *spaces)


TITLE = "Two word spaces without a known pair"
GOAL = ">= 1 at equal or better P@1"
NOTE = (
    "The words are the same in both spaces, their order is unknown. P@1: by CSLS in the "
    "coordinates of each method's map; for Gromov-Wasserstein that is the orthogonal map "
    f"fitted to the plan. Gromov-Wasserstein: squared loss of 1 - cos, epsilon {EPSILON} of "
    "its mean, the best of five values between 5e-4 and 5e-2 by the true pairs of glove100 to "
    "word2vec; POT computes in float64. Our search also searches from wrong pairs and reports "
    "whether it has failed, which the others do not; its checkpoints and logs are timed. "
    "FLOPs: a single matching of all words, 4 n^2 d."
)
CASES = (
    Case("glove100-word2vec-500", 500, (*FAR, 500), "glove100 to word2vec", rounds=1),
    Case("glove100-word2vec-1000", 1_000, (*FAR, 1_000), "glove100 to word2vec", rounds=1),
    Case("glove-glove100-1000", 1_000, (*NEAR, 1_000), "glove to glove100", rounds=1),
)
QUICK = Case("glove-glove100-200", 200, (*NEAR, 200))
IMPLEMENTATIONS = {
    "isthmus, search": Implementation(_search),
    "POT, Gromov-Wasserstein": Implementation(_pot, requires=("ot",), warm_up=False),
    "ott, Gromov-Wasserstein": Implementation(_ott, requires=("ott",)),
}
