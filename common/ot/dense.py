"""Entropic transport with a cost matrix that fits into memory, by ott-jax."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from ott.geometry import geometry
from ott.problems.linear.linear_problem import LinearProblem
from ott.solvers.linear import acceleration
from ott.solvers.linear.sinkhorn import Sinkhorn, SinkhornOutput, SinkhornState

from common.arrays import RealNumber
from common.ot.limits import FORBIDDEN, MIN_WEIGHT


@jax.tree_util.register_pytree_node_class
class Kernel(geometry.Geometry):
    """A geometry whose kernel K is applied as the product K v or K' u and nothing else.

    In every iteration ott 0.6.0 raises all entries of K to the powers epsilon / epsilon and 1,
    which compilers do not remove: up to 12 times as slow.
    """

    _kernel_matrix: Float[Array, "n m"]  # always given

    @property
    def kernel_matrix(self) -> Float[Array, "n m"]:
        """K, as given."""
        return self._kernel_matrix

    def apply_kernel(
        self, vec: Float[Array, " s"], eps: RealNumber | None = None, axis: int = 0
    ) -> Float[Array, " t"]:
        """K vec for axis 1, K' vec for axis 0."""
        del eps
        return self._kernel_matrix @ vec if axis == 1 else vec @ self._kernel_matrix


@jax.tree_util.register_pytree_node_class
class FixedIterations(Sinkhorn):
    """Sinkhorn without measured errors, which ott differentiates in each of its iterations."""

    def one_iteration(
        self,
        ot_prob: LinearProblem,
        state: SinkhornState,
        iteration: Any,  # a number or a traced array, where ott annotates a number
        compute_error: bool | Bool[Array, ""],
    ) -> SinkhornState:
        """Updates both potentials."""
        del compute_error
        update = self.lse_step if self.lse_mode else self.kernel_step
        return update(ot_prob, state, iteration)


@partial(jax.jit, static_argnames=("iterations", "log_domain", "symmetric"))
def transport(
    cost: Float[Array, "n m"],
    a: Float[Array, " n"] | None = None,
    b: Float[Array, " m"] | None = None,
    *,
    epsilon: RealNumber,
    iterations: int = 100,
    log_domain: bool = True,
    symmetric: bool = False,
) -> SinkhornOutput:
    """Solves entropic transport by Sinkhorn iterations, through which gradients are propagated.

    Returns ott's result: `matrix` is the plan P, `primal_cost` is <P, C>, and `reg_ot_cost` is
    <P, C> + epsilon KL(P | a b'), from the dual potentials. In float32, in the log domain,
    `reg_ot_cost` is right to five digits for epsilon down to a millionth of the costs. The plan,
    `primal_cost` and gradients have a relative error of about 5e-8 / epsilon where points are tied.

    An infinite cost forbids its pair; weights sum to one, None: uniform. Outside the log domain
    updates are products with exp(-cost / epsilon): several times as fast, but right only if epsilon
    is at least about a fortieth of the costs that carry mass. With `symmetric`, for a = b and a
    symmetric C, both potentials are replaced by the mean of themselves and their Sinkhorn update
    (Feydy et al. 2019, section 3.1), and the error at least halves each time.
    """
    a, b = (w if w is None else jnp.maximum(w, MIN_WEIGHT) for w in (a, b))
    cost = jnp.where(jnp.isinf(cost), FORBIDDEN, cost)
    given = {"cost_matrix": cost, "epsilon": epsilon}
    if log_domain:
        geom = geometry.Geometry(**given)
    else:
        geom = Kernel(kernel_matrix=jnp.exp(-cost / epsilon), **given)
    solver = FixedIterations(
        lse_mode=log_domain,
        min_iterations=iterations,
        max_iterations=iterations,
        # One inner loop: with several, the backward pass of ott 0.6.0 starts from a wrong state if
        # the minimum and maximum are equal, and gradients are wrong by tens of per cent.
        inner_iterations=iterations,
        implicit_diff=None,
        parallel_dual_updates=symmetric,
        momentum=acceleration.Momentum(value=0.5 if symmetric else 1.0),
    )
    return solver(LinearProblem(geom, a, b))
