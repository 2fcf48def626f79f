"""Absurd values for a config, one at a time."""

from ml_collections import ConfigDict

NOT_TRIED = ("experiment", "signed", "quick", "when_quick")


def absurd(value) -> list:
    """-1 and 0 for an integer, NaN and -1 for another number, 'nonsense' for a name.

    For a tuple: nothing, and one wrong value.
    """
    match value:
        case bool():
            return []
        case int():
            return [-1, 0]
        case float():
            return [float("nan"), -1.0]
        case str():
            return ["nonsense"]
        case tuple():
            return [()] + [(wrong,) for item in value[:1] for wrong in absurd(item)]
    return []


def cases(config: ConfigDict, prefix: str = "") -> list[tuple[str, object]]:
    """Dotted names and wrong values of all that can be set."""
    found = []
    for name, value in config.items():
        if isinstance(value, ConfigDict) and name not in NOT_TRIED:
            found += cases(value, f"{prefix}{name}.")
        elif name not in NOT_TRIED:
            found += [(f"{prefix}{name}", wrong) for wrong in absurd(value)]
    return found
