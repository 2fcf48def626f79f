"""What the command lines of all packages share."""

import importlib
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import common

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
