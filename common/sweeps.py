"""One value of a config varied."""

from collections.abc import Callable

from ml_collections import ConfigDict

from common.errors import UserError


def points(
    config: ConfigDict, check: Callable[[ConfigDict], None] = lambda point: None
) -> list[tuple[object, ConfigDict]]:
    """Each value of config.sweep_values with the config that has it as config.sweep_over.

    Args:
      config: of the sweep; `sweep_over` may be a nested name, `training.steps` say.
      check: called with each point, to say at the start what is wrong with it.

    Raises:
      UserError: a name that the config lacks or a value that it can't have.
    """
    found = []
    for value in config.sweep_values:
        point = config.copy_and_resolve_references()  # deep: nested values differ by point
        try:
            point.update_from_flattened_dict({config.sweep_over: value})
        except (KeyError, TypeError, ValueError):
            raise UserError(
                f"The config's {config.sweep_over} can't be {value!r}: correct sweep_over or "
                "sweep_values."
            ) from None
        check(point)
        found.append((value, point))
    return found
