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


def cases(config: ConfigDict) -> list[tuple[str, object]]:
    """Dotted names and wrong values of all that can be set."""
    found, names = [], [(name, config) for name in config if name not in NOT_TRIED]
    while names:
        path, holder = names.pop(0)
        value = holder[path.rsplit(".")[-1]]
        if isinstance(value, ConfigDict):
            names += [(f"{path}.{name}", value) for name in value]
        found += [(path, wrong) for wrong in absurd(value)]
    return found
