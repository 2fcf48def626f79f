"""Optimal transport: entropic, and exact assignment.

Three solvers of the entropic problem min_P <P, C> + epsilon KL(P | a b'), P 1 = a, P' 1 = b:

  dense.transport   one problem with a given cost matrix, by ott-jax; differentiable. It is not
                    imported here, since ott takes a second to import.
  solve_batch       many small problems at once, by ott-jax; differentiable
  match             two large clouds; the plan is never held in memory
"""

# ruff: noqa: F401
from common.ot.assignment import assign
from common.ot.batched import VALUES, BatchSolution, Potentials, ground_cost, safe_sqrt, solve_batch
from common.ot.streamed import Matching, barycentric, match
