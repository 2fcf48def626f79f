import dataclasses

import pytest
from absl import flags
from ml_collections import ConfigDict, config_flags

from common.errors import UserError
from common.run.launch import define_config_flag
from common.run.settings import apply_quick, settings, with_value


@dataclasses.dataclass(frozen=True, kw_only=True)
class Optimiser:
    rate: float
    decay: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    optimiser: Optimiser
    steps: int
    sizes: tuple[int, ...] = ()
    random_seed: int = 0


def config(**values):
    standard = {"optimiser": {"rate": 0.5}, "steps": 60, "sizes": [4, 8], "other": 1}
    return ConfigDict(standard | values).lock()


def test_a_dataclass_is_built_from_the_values_of_its_fields():
    built = settings(Training, config(), random_seed=3)
    assert built == Training(optimiser=Optimiser(rate=0.5), steps=60, sizes=(4, 8), random_seed=3)
    assert settings(Training, config(), steps=2).steps == 2  # a given field takes precedence
    assert hash(built) == hash(settings(Training, config(), random_seed=3))


def test_a_missing_value_is_named():
    with pytest.raises(UserError, match="lacks 'rate', which Optimiser needs"):
        settings(Training, config(optimiser={}))


def test_quick_values_apply_unless_the_command_line_gave_others():
    values = {"quick": True, "when_quick": {"steps": 2, "optimiser": {"rate": 0.1}}}
    quick = apply_quick(config(**values), {"steps": 3})
    assert (quick.steps, quick.optimiser.rate) == (3, 0.1)
    assert apply_quick(config(**values | {"quick": False})).steps == 60
    assert apply_quick(config()).steps == 60  # a config without quick


CONFIG = """
from ml_collections import ConfigDict
def get_config():
    config = {"methods": ("gt",), "sizes": (1, 2), "sgd": {"retrieval": ("nn",), "steps": 3}}
    return ConfigDict(config)
"""


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["methods=a,b"], "methods", ("a", "b")),
        (["methods=a"], "methods", ("a",)),
        (["methods=('a','b')"], "methods", ("a", "b")),
        (["methods=a, b,"], "methods", ("a", "b")),
        (["methods=one:two,/a/b"], "methods", ("one:two", "/a/b")),
        (["methods=1-5000,15001-20000"], "methods", ("1-5000", "15001-20000")),
        (["methods="], "methods", ()),
        (["methods=a", "methods=b,c"], "methods", ("b", "c")),
        (["sizes=4", "sizes=4,8"], "sizes", (4, 8)),
        (["sgd.retrieval=nn,csls", "sgd.retrieval=nn"], "sgd.retrieval", ("nn",)),
        (["sgd.steps=4", "sgd.steps=5"], "sgd.steps", 5),
    ],
)
def test_the_last_value_of_a_flag_is_taken_and_tuples_are_split_at_commas(
    tmp_path, words, name, value
):
    (tmp_path / "config.py").write_text(CONFIG)
    argv = ["main", f"--config={tmp_path}/config.py", *(f"--config.{word}" for word in words)]
    values = flags.FlagValues()
    flag = define_config_flag(flag_values=values, sys_argv=argv)
    values(argv)
    given = config_flags.get_override_values(values["config"])
    assert given == {name: value}
    unchanged = flag.value.copy_and_resolve_references()
    unchanged.update_from_flattened_dict(given)
    assert unchanged == flag.value


@pytest.mark.parametrize(("name", "value"), [("stepz", 1), ("steps", "many")])
def test_a_value_that_cannot_be_set_is_refused(name, value):
    with pytest.raises(UserError, match=f"{name} can't be {value!r}"):
        with_value(config(), name, value)
