"""Runs a command in the process of a test, or in one with several devices."""

import os
import re
import runpy
import socket
import sys
from pathlib import Path

import pytest
from absl import flags

ROOT = Path(__file__).parents[1]


def run(monkeypatch, module, *arguments):
    """Runs the module of a command, and returns its exit code.

    Commands have flags of the same names. So those of others are put aside meanwhile. The bytecode
    is not written: that of a module that is run and not imported would have the checks of this
    process's annotations under the name that a user's process reads.
    """
    aside = _flags_of_commands()
    for name in aside:
        delattr(flags.FLAGS, name)
    monkeypatch.setattr(sys, "argv", [module, *map(str, arguments)])
    try:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as left:
            patch.setattr(sys, "dont_write_bytecode", True)
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        return left.value.code
    finally:
        for name in _flags_of_commands():
            delattr(flags.FLAGS, name)
        for name, flag in aside.items():
            flags.FLAGS[name] = flag
        flags.FLAGS.unparse_flags()


def refused(monkeypatch, capfd, module, *arguments):
    """Runs the module of a command, which has to end with one sentence, and returns that."""
    assert run(monkeypatch, module, *arguments) == 2
    lines = capfd.readouterr().err.splitlines()
    (sentence,) = [line for line in lines if line and not re.match(r"I\d{4} ", line)]  # no log
    return sentence


def _flags_of_commands():
    """Flags that no library has defined, and the values of a config, whose names have a point."""
    own = {}
    for name in flags.FLAGS:
        module = str(flags.FLAGS.find_module_defining_flag(name))
        ours = module not in sys.modules or (ROOT / module.partition(".")[0]).is_dir()
        if ours or "." in name:
            own[name] = flags.FLAGS[name]
    return own


def on_devices(count):
    """The environment of a process in which so many devices are simulated."""
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={count}"
    path = os.pathsep.join([str(ROOT), *sys.path])
    return os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path}


def on_two_hosts():
    """The environments of two processes, which Open MPI tells their rank and the first address.

    JAX takes the port of the first process from the number of the job, a multiple of 4,096. Tests
    that run at the same time have different ones, as they are given different free ports.
    """
    with socket.socket() as free:
        free.bind(("localhost", 0))
        job = free.getsockname()[1] * 4_096
    address = f"{job}.0;tcp://127.0.0.1:0"
    world = {"OMPI_MCA_orte_hnp_uri": address, "OMPI_COMM_WORLD_SIZE": "2"}
    names = "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"
    return [on_devices(1) | world | dict.fromkeys(names, rank) for rank in "01"]
