"""Typed values for functions, from the ConfigDict that the command line fills."""

import ast
import dataclasses
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from absl import flags
from ml_collections import ConfigDict

from common.errors import UserError, check_count

T = TypeVar("T")


class TupleParser(flags.ArgumentParser):
    """Reads `a,b` as well as `('a', 'b')`, and `1,2`; an empty text is an empty tuple.

    The parser of ml_collections reads `a,b` as one text, and appends a flag that is given twice.
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


def settings(kind: type[T], config: ConfigDict, **given: Any) -> T:
    """Builds a dataclass from the config's values of the same names, and those that are given here.

    A field of a dataclass, or of one or None, is built from the nested config of its name. Lists
    become tuples, hashable as static arguments of `jax.jit`. UserError: a value is missing.
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
    """Applies `config.when_quick`, in place, if `config.quick` is set; `given` precedes it."""
    if config.get("quick"):
        config.update(config.get("when_quick", {}))
        config.update_from_flattened_dict(given or {})
    return config


def check_counts(config: ConfigDict, file: Mapping[str, Any]) -> None:
    """Raises a UserError if what is a whole number in the config's `file` is none, or negative."""
    for name, value in flat(config.to_dict()).items():
        before, now = (x if isinstance(x, tuple) else (x,) for x in (file.get(name), value))
        numbers: list[Any] = [x for x in now if x is not None]
        if before and {*map(type, before)} == {int}:
            for number in numbers:
                check_count(f"config.{name}", number, least=0)


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted name -> value, of nested values and of the groups that hold them."""
    values = {}
    for key, value in config.items():
        values[f"{prefix}{key}"] = value
        if isinstance(value, Mapping):
            values |= flat(value, f"{prefix}{key}.")
    return values


def with_value(config: ConfigDict, name: str, value: Any) -> ConfigDict:
    """A copy of the config with the value of a dotted name replaced; UserError if it cannot be."""
    changed = config.copy_and_resolve_references()
    try:
        changed.update_from_flattened_dict({name: value})
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"The config's {name} can't be {value!r}: correct the name or the value."
        ) from None
    return changed


def varied(config: ConfigDict) -> Iterator[tuple[str, list]]:
    """The lines of `config.vary`: the dotted name of a value, and values of it; or a UserError."""
    known = [name for name, x in flat(config.to_dict()).items() if not isinstance(x, Mapping)]
    for line in config.vary:
        match line:
            case (str(name), tuple() | list() as values) if name in known:
                yield name, list(dict.fromkeys(values))
            case _:
                raise UserError(
                    f"config.vary has {line!r}: write the name of a value of the config and the "
                    "values that it takes, [('num_pairs', (5, 10))] for instance."
                )
