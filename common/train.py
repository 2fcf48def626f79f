"""The training loop: compiled chunks of steps, a progress bar, a log, checkpoints, self-resume."""

import re
import shutil
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from absl import logging
from jax import lax
from jaxtyping import UInt8
from tqdm import tqdm

from common.data.kept import digest
from common.errors import UserError
from common.workdir import Workdir

STORAGE = re.compile(r": ([^:]+) \[os_error_code")  # how tensorstore says what went wrong
Step = Callable[[Any, Any, Any, Any], tuple[Any, dict]]
FINITE = "finite"  # the name of a metric that `run` keeps to itself


def run(
    step: Step,
    state: Any,
    data: Any,
    settings: Hashable,
    *,
    num_steps: int,
    chunk: int,
    work: Workdir,
    part: str,
    evaluate: Callable[[Any], dict] | None = None,
    done: Callable[[Any], bool] | None = None,
) -> Any:
    """Runs `step` up to `num_steps` times and returns the last state.

    Steps are compiled `chunk` at a time, so the host is visited once a chunk: there the metrics are
    logged, the state is evaluated and checkpointed. A part that was killed goes on from its last
    whole checkpoint with the same numbers; a part that has ended returns its last checkpoint.

    Args:
      step: `(state, index, data, settings) -> (state, {name: scalar})`, jit-compatible; a
        module-level function, so that parts that differ in `data` alone share one compilation.
      state: tree of arrays; donated.
      data: tree of arrays that the steps read.
      settings: hashable, static under jit.
      num_steps: the most steps to take.
      chunk: steps between visits to the host.
      work: the run's folder.
      part: name of this part, under which records and checkpoints are kept.
      evaluate: `state -> {name: scalar}`, at the start and at the end of each chunk.
      done: `state -> bool`, asked before each chunk; a function of the state alone, so that a
        resumed part ends where it would have ended.

    Raises:
      UserError: a chunk of no step, a checkpoint that can't be written, or a step after which a
        float of the state or the metrics is NaN or infinite; what it made is not kept.
    """
    if chunk < 1:
        raise UserError(f"{part} is to be logged every {chunk} steps: give one step or more.")
    most = min(chunk, num_steps)
    folder = (work.path / "checkpoints" / part).absolute()
    # Not in the background: there a full disk would be found out later, or by another thread.
    options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=False)
    # Named, or the manager takes a guess from what is in the folder, be it damaged.
    handler = ocp.StandardCheckpointHandler()
    with ocp.CheckpointManager(folder, options=options, item_handlers=handler) as manager:
        start, state = _restore(manager, state)
        work.forget(part, start if start else -1)
        if not start and evaluate:
            work.log(part, 0, _floats(evaluate(state)))
        with tqdm(total=num_steps, initial=start, desc=part, unit="step", leave=False) as bar:
            while start < num_steps and not (done and done(state)):
                length = min(most, num_steps - start)
                state, metrics = _chunk(state, start, length, data, step, settings, most)
                metrics = jax.device_get(metrics)  # at once, not number by number
                finite = metrics.pop(FINITE)[:length]
                good = int(np.append(finite.all(axis=1), False).argmin())
                for i in range(min(good, length - 1)):
                    work.log(part, start + i + 1, _floats({k: v[i] for k, v in metrics.items()}))
                if good < length:
                    names = [name for name, _ in _numbers(metrics, state)]
                    lost = [names[i] for i in np.flatnonzero(~finite[good])]
                    kept = str(folder / str(start)) if start else "none, it had just begun"
                    raise UserError(_diverged(part, start + good + 1, lost, kept))
                start += length
                last = {k: v[length - 1] for k, v in metrics.items()} | (
                    evaluate(state) if evaluate else {}
                )
                last = _floats(last)
                work.log(part, start, last)
                _save(manager, start, state)
                bar.update(length)
                bar.set_postfix({k: f"{v:.4g}" for k, v in last.items()})
    work.close_log(part)
    return state


def forget_checkpoints(work: Workdir, part: str) -> None:
    """Deletes a part's checkpoints, once its result is stored."""
    shutil.rmtree(work.path / "checkpoints" / part, ignore_errors=True)


@partial(jax.jit, static_argnames=("step", "settings", "most"), donate_argnames="state")
def _chunk(state, start, length, data, step, settings, most):
    """The first `length` of `most` metrics are those of the steps.

    The length is no constant, so that a last, shorter chunk needs no compilation of its own.
    """

    def body(i, carry):
        state, metrics = carry
        state, found = _watched(step, state, start + i, data, settings)
        return state, {name: metrics[name].at[i].set(value) for name, value in found.items()}

    shapes = jax.eval_shape(lambda state: _watched(step, state, start, data, settings)[1], state)
    metrics = {name: jnp.zeros((most, *x.shape), x.dtype) for name, x in shapes.items()}
    return lax.fori_loop(0, length, body, (state, metrics))


def _watched(step, state, index, data, settings):
    """A step that also tells, as one of its metrics, which of its arrays are finite."""
    state, metrics = step(state, index, data, settings)
    finite = [jnp.isfinite(array).all() for _, array in _numbers(metrics, state)]
    return state, metrics | {FINITE: jnp.stack(finite)}


def _numbers(metrics: dict, state: Any) -> list[tuple[str, Any]]:
    """The floats of a step by name; a gradient that is lost shows in the optimiser's moments."""
    found = jax.tree_util.tree_leaves_with_path((metrics, {"state": state}))
    return [
        (jax.tree_util.keystr(path[1:], simple=True, separator="."), leaf)
        for path, leaf in found
        if jnp.issubdtype(leaf.dtype, jnp.inexact)
    ]


def _diverged(part: str, step: int, lost: list[str], kept: str) -> str:
    more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
    return (
        f"The training of {part} diverged: step {step} made {', '.join(lost[:3])}{more} NaN or "
        f"infinite; lower its learning rate or mend its data (its last good checkpoint: {kept})."
    )


def _save(manager: ocp.CheckpointManager, step: int, state: Any) -> None:
    """Keeps the state with a hash of it: the storage format lets flipped bits pass."""
    tree = {"state": state, "sha256": _digest(state)}
    try:
        manager.save(step, args=ocp.args.StandardSave(tree))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else STORAGE.search(str(error))
        if not reason:
            raise
        raise UserError(
            f"Cannot write the checkpoint {manager.directory / str(step)} "
            f"({reason if isinstance(reason, str) else reason[1]}): make room and run the same "
            "command again to go on."
        ) from error


def _restore(manager: ocp.CheckpointManager, state: Any) -> tuple[int, Any]:
    """The last whole checkpoint, or step 0 and the state as given; damaged ones are deleted."""
    form = {"state": state, "sha256": np.zeros(32, np.uint8)}
    for step in sorted(manager.all_steps(), reverse=True):
        try:
            found = manager.restore(step, args=ocp.args.StandardRestore(form))
            if not np.array_equal(found["sha256"], _digest(found["state"])):
                raise ValueError("its hash is another")
            return step, found["state"]
        except (MemoryError, jax.errors.JaxRuntimeError):  # no room for it on the device, say
            raise
        except Exception as error:  # orbax and its storage raise many kinds for a broken file
            path = manager.directory / str(step)
            logging.warning(
                "The checkpoint %s is damaged (%s): going back to the one before it, or to the "
                "start of the part.",
                path,
                type(error).__name__,
            )
            manager.delete(step)
    return 0, state


def _digest(state: Any) -> UInt8[np.ndarray, "32"]:
    leaves = [np.asarray(leaf) for leaf in jax.device_get(jax.tree.leaves(state))]
    return np.frombuffer(bytes.fromhex(digest(*leaves)), np.uint8)


def _floats(values: dict) -> dict[str, float]:
    return {name: float(value) for name, value in jax.device_get(values).items()}
