"""Checkpoints of a training in a folder, each with its hash; damaged ones are moved aside."""

import re
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from absl import logging
from jaxtyping import UInt8

from common.data.array_cache import digest
from common.errors import UserError, is_unreadable

REASON = re.compile(r": ([^:]+) \[os_error_code")  # in the error messages of tensorstore
# Beginnings of its messages that say nothing about the content of a file.
UNREADABLE = re.compile("PERMISSION_DENIED|RESOURCE_EXHAUSTED|UNAVAILABLE|ABORTED")


class Checkpoints:
    """The last two checkpoints of a training in a folder; damaged ones are moved.

    Of several hosts, the first one alone has them.
    """

    def __init__(self, folder: Path, damaged: Path):
        # Synchronous, so that the error of a full disk is raised by the save and at once.
        options = ocp.CheckpointManagerOptions(
            max_to_keep=2,
            enable_async_checkpointing=False,
            create=False,
            multiprocessing_options=ocp.options.MultiprocessingOptions(active_processes={0}),
        )
        folder.mkdir(parents=True, exist_ok=True)
        # Without an explicit handler the manager infers one from the folder, which may be damaged.
        handler = ocp.StandardCheckpointHandler()
        self._folder, self._damaged = folder, damaged
        self._manager = ocp.CheckpointManager(folder, options=options, item_handlers=handler)

    def close(self) -> None:
        """Closes the files and ends the threads of orbax."""
        self._manager.close()

    def save(self, step: int, state: Any) -> None:
        """Saves the state with its hash, as flipped bits are not detected; UserError: no room."""
        try:
            state = jax.device_get(state)  # arrays of several hosts are not saved by one
            tree = {"state": state, "sha256": _digest(state)}
            self._manager.save(step, args=ocp.args.StandardSave(tree))
        except (OSError, ValueError) as error:
            found = REASON.search(str(error))
            reason = error.strerror if isinstance(error, OSError) else found and found[1]
            if not reason:
                raise
            raise UserError(
                f"Cannot write the checkpoint {self._folder / str(step)} ({reason}): make room "
                "and run the same command again to resume."
            ) from error

    def restore(self, state: Any) -> tuple[int, Any]:
        """The last intact checkpoint, or step 0 and the given state; moves damaged ones aside.

        UserError: a checkpoint cannot be read, or is of arrays of other types or shapes.
        """
        state = jax.tree.map(jnp.asarray, state)  # orbax restores no NumPy scalars
        for step in sorted(self._manager.all_steps(), reverse=True):
            path = self._folder / str(step)
            try:
                return step, self._restored(step, state)
            except (UserError, MemoryError, jax.errors.JaxRuntimeError):  # or no memory is left
                raise
            except Exception as error:  # orbax raises many kinds of error for damaged files
                if reason := _unreadable(error):
                    raise UserError(
                        f"Cannot read the checkpoint {path} ({reason}): correct that and run the "
                        "same command again, or choose another --workdir."
                    ) from error
                aside = self._damaged / path.name
                shutil.rmtree(aside, ignore_errors=True)
                aside.parent.mkdir(parents=True, exist_ok=True)
                path.rename(aside)
                self._manager.reload()
                about = path, type(error).__name__, aside
                logging.warning(
                    "The checkpoint %s is damaged (%s) and now is %s: using the one before.", *about
                )
        return 0, state

    def _restored(self, step: int, state: Any) -> Any:
        """The state of a step, which is of the same form as the given one."""
        stored, wanted = _form(self._manager.item_metadata(step).tree["state"]), _form(state)
        if stored != wanted:
            raise UserError(
                f"The checkpoint {self._folder / str(step)} holds other arrays "
                f"({', '.join(stored - wanted)}) than this run: set JAX_ENABLE_X64 as before, or "
                "choose another --workdir."
            )
        empty = jax.tree.map(lambda x: np.empty(x.shape, x.dtype), state)
        form = {"state": empty, "sha256": np.zeros(32, np.uint8)}
        found = self._manager.restore(step, args=ocp.args.StandardRestore(form))
        if not np.array_equal(found["sha256"], _digest(found["state"])):
            raise ValueError("wrong hash")
        return jax.tree.map(jnp.asarray, found["state"])


def _form(state: Any) -> set[str]:
    """Types and shapes of the arrays, `float32[3,4]` for instance."""
    return {f"{x.dtype}{[*x.shape]}".replace(" ", "") for x in jax.tree.leaves(state)}


def _unreadable(error: Exception) -> str | None:
    """Why a file that may be whole cannot be read; None if the error tells of its content."""
    if isinstance(error, OSError):
        return error.strerror if is_unreadable(error) else None
    code = UNREADABLE.match(str(error))
    return code and code[0].lower().replace("_", " ")


def _digest(state: Any) -> UInt8[np.ndarray, "32"]:
    leaves = [np.asarray(leaf) for leaf in jax.device_get(jax.tree.leaves(state))]
    return np.frombuffer(bytes.fromhex(digest(*leaves)), np.uint8)
