"""What the command lines of all packages share."""

import importlib
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from ml_collections import ConfigDict

import common
from common import cli
from common.errors import UserError

ROOT = Path(__file__).parents[2]


def printed(code):
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("package", ["anchor_opt", "embed_match", "lpl", "wasserstein_embed"])
def test_a_wrong_flag_does_not_wait_for_jax(package):
    assert printed(f"import sys, {package}.main; print('jax' in sys.modules)") == "False"


def test_matrix_products_are_at_full_precision_whichever_is_imported_first():
    look = "print(jax.config.jax_default_matmul_precision)"
    assert printed(f"import common, jax; {look}") == "highest"
    with jax.default_matmul_precision("default"):
        importlib.reload(common)
    assert jax.config.jax_default_matmul_precision == "highest"


def test_nothing_to_run_is_a_mistake():
    config = ConfigDict({"quick": False, "methods": (), "figure_words": ()})
    with pytest.raises(UserError, match="methods is empty: give one value at least"):
        cli.settle(config)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"rate": float("nan")}, "rate is nan: give a number"),
        ({"rate": float("-inf")}, "rate is -inf: give a number"),
        ({"loop": {"steps": -1}}, "loop.steps is -1: give a number from 0 up"),
        ({"sizes": (3, -1)}, r"sizes is \(3, -1\): give a number from 0 up"),
        ({"delta": {"neutral": float("nan")}, "signed": ("delta",)}, "delta.neutral is nan"),
    ],
)
def test_numbers_that_nobody_means(values, said):
    with pytest.raises(UserError, match=said):
        cli.settle(ConfigDict({"quick": False} | values))


def test_numbers_that_may_be_negative_and_values_that_are_none():
    values = {"delta": {"neutral": -5.0}, "loop": {"init": (-1e-3, 1e-3)}, "name": "-1", "on": True}
    config = ConfigDict({"quick": False, "signed": ("delta", "init")} | values).lock()
    assert cli.settle(config).to_dict() == {"quick": False} | values


def test_required_values():
    config = ConfigDict({"steps": 0, "loop": {"rate": 0.5, "sizes": (4, 0), "none": ()}})
    cli.positive(config, "loop.rate")
    cli.share(config, "loop.rate", "steps")
    for name in ("steps", "loop.sizes", "loop.none"):
        with pytest.raises(UserError, match=f"{name} is .*: give a positive number"):
            cli.positive(config, name)
    with pytest.raises(UserError, match="a share from 0 to 1"):
        cli.share(config, "loop.sizes")
    cli.at_least(config, 0, "steps", "loop.sizes")
    with pytest.raises(UserError, match=r"loop.sizes is \(4, 0\): give 4 or more"):
        cli.at_least(config, 4, "loop.sizes")
    for name in ("steps", "loop.sizes"):
        with pytest.raises(UserError, match="give a multiple of 2"):
            cli.multiple(config, 2, name)
    cli.two(config, "loop.sizes")
    with pytest.raises(UserError, match=r"loop.none is .*: give two numbers"):
        cli.two(config, "loop.none")


def test_values_given_on_the_command_line_hold_in_a_quick_run():
    config = ConfigDict({"quick": True, "words": 4_000, "loop": {"steps": 60, "size": 8}})
    config.when_quick = ConfigDict({"words": 800, "loop": {"steps": 2, "size": 4}})
    settled = cli.settle(config, {"words": 500, "loop.steps": 3})
    assert (settled.words, settled.loop.steps, settled.loop.size) == (500, 3, 4)
