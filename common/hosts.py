"""What the hosts of a run (`jax.distributed`) agree on, so that none waits for another forever.

Each function is called on all hosts. Of one host, it is what that host says. JAX is imported when
it is called, since some commands need no JAX.
"""

from collections.abc import Callable
from typing import Any

from common.errors import UserError


def all_hosts(condition: bool) -> bool:
    """Whether the condition is true on all hosts."""
    import jax
    from jax.experimental import multihost_utils

    if not jax.distributed.is_initialized():
        return condition
    return bool(multihost_utils.process_allgather(jax.numpy.asarray(condition)).all())


def of_first_host(tree: Any) -> Any:
    """The arrays of the first host; those of the others have the same types and shapes."""
    import jax
    from jax.experimental import multihost_utils

    if not jax.distributed.is_initialized():
        return tree
    return multihost_utils.broadcast_one_to_all(jax.tree.map(jax.numpy.asarray, tree))


def unless_refused(action: Callable[[], Any]) -> Any:
    """The result of an action; a UserError on all hosts if there is one on any."""
    result = refusal = None
    try:
        result = action()
    except UserError as error:
        refusal = error
    if not all_hosts(refusal is None):
        raise refusal or UserError("Another host has ended this run: correct what it says.")
    return result
