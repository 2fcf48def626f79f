"""Typed values for functions, from the ConfigDict that the command line fills."""

import ast
import dataclasses
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from absl import flags
from ml_collections import ConfigDict

from common.errors import UserError

T = TypeVar("T")


class TupleParser(flags.ArgumentParser):
    """Reads `a,b` as well as `('a', 'b')`, and `1,2`; an empty text is an empty tuple.

    The parser of ml_collections reads `a,b` as one text, and appends the value of a flag that is
    given twice; with this one the last value is taken, as of all other flags.
    """

    def parse(self, argument: Any) -> tuple:
        """The tuple that a text, or the default of a flag, stands for."""
        if not isinstance(argument, str):
            return tuple(argument)
        try:
            value = ast.literal_eval(argument)
        except (ValueError, SyntaxError):
            value = [part.strip() for part in argument.split(",") if part.strip()]
        return tuple(value) if isinstance(value, (tuple, list)) else (value,)

    def flag_type(self) -> str:
        """As absl names it in its messages."""
        return "tuple"


def settings(kind: type[T], config: ConfigDict, **given: Any) -> T:
    """Builds a dataclass from the config's values of the same names.

    A field whose type is a dataclass, or a dataclass or None, is built from the nested config of
    its name. Lists become tuples, so that a frozen dataclass is hashable and can be a static
    argument of `jax.jit`.

    Args:
      kind: a dataclass.
      config: values by field name; other values are ignored.
      **given: values of fields that are not read from the config.

    Raises:
      UserError: the config lacks a field that has no default.
    """
    if not dataclasses.is_dataclass(kind):
        raise TypeError(f"{kind.__name__} is not a dataclass")
    values = dict(given)
    types = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if field.name in given:
            continue
        if field.name in config:
            value = config[field.name]
            inner = (*typing.get_args(types[field.name]), types[field.name])[0]  # X of `X | None`
            nested = isinstance(inner, type) and dataclasses.is_dataclass(inner)
            if isinstance(value, ConfigDict) and nested:
                value = settings(inner, value)
            values[field.name] = tuple(value) if isinstance(value, list) else value
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise UserError(
                f"The config lacks '{field.name}', which {kind.__name__} needs: add it to the file."
            )
    return kind(**values)


def apply_quick(config: ConfigDict, given: dict[str, Any] | None = None) -> ConfigDict:
    """Applies `config.when_quick` if `config.quick` is set.

    Args:
      config: the config with the values of the command line; changed in place.
      given: values of the command line by dotted name, which have precedence over `when_quick`.
    """
    if config.get("quick"):
        config.update(config.get("when_quick", {}))
        config.update_from_flattened_dict(given or {})
    return config


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted name -> value, of nested values and of the groups that hold them."""
    values = {}
    for key, value in config.items():
        values[f"{prefix}{key}"] = value
        if isinstance(value, Mapping):
            values |= flat(value, f"{prefix}{key}.")
    return values


def with_value(config: ConfigDict, name: str, value: Any) -> ConfigDict:
    """A copy of the config with one value replaced.

    Args:
      config: unchanged.
      name: dotted name of a value of the config.
      value: of the same type, or of one that ml_collections converts.

    Raises:
      UserError: the config has no such value, or it cannot be set to this one.
    """
    changed = config.copy_and_resolve_references()
    try:
        changed.update_from_flattened_dict({name: value})
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"The config's {name} can't be {value!r}: correct the name or the value."
        ) from None
    return changed


def varied(config: ConfigDict) -> Iterator[tuple[str, list]]:
    """The lines of `config.vary`: the dotted name of a value of the config, and values of it.

    Raises:
      UserError: a line is something else.
    """
    own = [name for name, x in flat(config.to_dict()).items() if not isinstance(x, Mapping)]
    for line in config.vary:
        match line:
            case (str(name), tuple() | list() as values) if name in own:
                yield name, list(values)
            case _:
                raise UserError(
                    f"config.vary has {line!r}: write the name of a value of the config and the "
                    "values that it takes, [('num_pairs', (5, 10))] for instance."
                )


def sweep(config: ConfigDict) -> list[tuple[Any, ConfigDict]]:
    """The points of a sweep: each value of `config.sweep_values`, and the config with that value.

    Raises:
      UserError: as `with_value`; `config.sweep_over` is the dotted name.
    """
    return [(value, with_value(config, config.sweep_over, value)) for value in config.sweep_values]
