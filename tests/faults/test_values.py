"""Wrong numbers in every config; the rest of tests/faults/values.py takes minutes."""

import math
import runpy
from pathlib import Path

import pytest

from common import cli
from common.errors import UserError
from tests.faults import absurd

ROOT = Path(__file__).parents[2]
CONFIGS = [p for p in sorted(ROOT.glob("configs/*/*.py")) if "def get_config" in p.read_text()]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_numbers_that_nobody_means(path):
    get_config = runpy.run_path(str(path))["get_config"]
    tried = 0
    for name, value in absurd.cases(get_config()):
        number = value[0] if isinstance(value, tuple) and value else value
        if isinstance(number, str | tuple) or number >= 0:
            continue
        config = get_config()
        signed = not math.isnan(number) and set(name.split(".")) & set(config.get("signed", ()))
        config.update_from_flattened_dict({name: value})
        tried += 1
        if signed:
            cli.settle(config)
            continue
        with pytest.raises(UserError, match=f"^{name} is .*: give a number"):
            cli.settle(config)
    assert tried > 10
