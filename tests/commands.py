"""Runs a command in the process of a test, or in one with several devices."""

import os
import runpy
import sys
from pathlib import Path

import pytest
from absl import flags

ROOT = Path(__file__).parents[1]


def run(monkeypatch, module, *arguments):
    """Runs the module of a command, and returns its exit code.

    Commands have flags of the same names. So those of others are put aside meanwhile.
    """
    own = [name for name in flags.FLAGS if not _is_of_absl(name)]
    aside = {name: flags.FLAGS[name] for name in own}
    for name in own:
        delattr(flags.FLAGS, name)
    monkeypatch.setattr(sys, "argv", [module, *map(str, arguments)])
    try:
        with pytest.raises(SystemExit) as left:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        return left.value.code
    finally:
        for name in [name for name in flags.FLAGS if not _is_of_absl(name)]:
            delattr(flags.FLAGS, name)
        for name, flag in aside.items():
            flags.FLAGS[name] = flag
        flags.FLAGS.unparse_flags()


def _is_of_absl(name):
    return str(flags.FLAGS.find_module_defining_flag(name)).startswith("absl.")


def on_devices(count):
    """The environment of a process in which so many devices are simulated."""
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={count}"
    path = os.pathsep.join([str(ROOT), *sys.path])
    return os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path}
