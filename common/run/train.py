"""The training loop: compiled chunks of steps, a progress bar, a log, and checkpoints."""

import shutil
import time
from collections.abc import Callable, Hashable
from contextlib import ExitStack, closing
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float

from common.errors import UserError
from common.hosts import of_first_host
from common.parallel import constrain_replicated, replicated
from common.progress import progress_bar
from common.run.workdir import Workdir

Step = Callable[[Any, Any, Any, Any], tuple[Any, dict]]
Metrics = dict[str, Float[Array, ""]]
FINITE = "finite"  # a metric that `run` adds and does not log
# Least time between checkpoints. One takes about .1 s, more than all steps of a small training.
SAVE_SECONDS = 1.0


class State(NamedTuple):
    """Trained parameters, and the state of their optimiser."""

    parameters: Any
    optimiser: optax.OptState

    @classmethod
    def init(cls, parameters: Any, optimiser: optax.GradientTransformation) -> "State":
        """The state before the first update."""
        return cls(parameters, optimiser.init(parameters))

    def update(self, gradient: Any, optimiser: optax.GradientTransformation) -> "State":
        """The state after an update with this gradient."""
        change, new = optimiser.update(gradient, self.optimiser, self.parameters)
        return State(optax.apply_updates(self.parameters, change), new)


class Stages(NamedTuple):
    """The training loop in a run's folder, under the name of one of its parts."""

    work: Workdir
    part: str
    progress: bool = True

    def __call__(
        self, step: Step, state: Any, data: Any, settings: Hashable, *, stage: str = "", **options
    ) -> Any:
        """`run` under the name PART, or PART/STAGE for one of several trainings of the part."""
        part = f"{self.part}/{stage}" if stage else self.part
        options |= {"work": self.work, "part": part, "progress": self.progress}
        return run(step, state, data, settings, **options)


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
    progress: bool = True,
) -> Any:
    """Runs `step` up to `num_steps` times and returns the last state.

    `chunk` steps are compiled into one program. After each chunk the metrics are logged and the
    state is evaluated, and checkpointed if the last checkpoint is a second old. A part that was
    killed, or has finished, is resumed from its last complete checkpoint to the same numbers. Of
    several hosts, the first one writes the checkpoints, and sends the last one to the others.

    `step` is `(state, index, data, settings) -> (state, {name: scalar})`, compatible with jit, a
    module-level function, so that parts that differ in `data` only share one compilation. The state
    and the data are trees of arrays, the state donated; the settings are static under jit.
    `evaluate` is `state -> {name: scalar}`, called before the first and after each chunk. `done` is
    `state -> bool`, called before each chunk; it must depend on the state alone, so that a resumed
    part ends at the same step.

    UserError: a checkpoint cannot be written, or a float of the state or of the metrics is NaN or
    infinite after a step; that chunk is not checkpointed.
    """
    chunk = max(1, min(chunk, num_steps))
    folder = _checkpoints(work, part)
    with ExitStack() as opened:
        # Opened when needed.
        checkpoints = cache(lambda: opened.enter_context(closing(_open_checkpoints(folder))))
        first = jax.process_index() == 0
        restored = checkpoints().restore(state) if first and folder.exists() else (0, state)
        start, state = of_first_host(restored)
        start = int(start)  # an array of several hosts
        state, data = replicated((state, data))  # as the chunks return the state
        checkpoint, saved = start, time.monotonic()
        work.metrics.forget(part, start if start else -1)
        if not start and evaluate:
            work.metrics.add(part, {0: _floats(evaluate(state))})
        shown = {"desc": part, "unit": "step", "leave": False, "disable": not progress}
        with progress_bar(total=num_steps, initial=start, **shown) as bar:
            while start < num_steps and not (done and done(state)):
                length = min(chunk, num_steps - start)
                state, metrics = _chunk(state, start, length, data, step, settings, chunk)
                metrics = jax.device_get(metrics)  # one transfer for all
                finite = metrics.pop(FINITE)[:length]
                num_finite = int(np.append(finite.all(axis=1), False).argmin())  # leading steps
                logged = {
                    start + i + 1: {k: float(v[i]) for k, v in metrics.items()}
                    for i in range(num_finite)
                }
                if num_finite < length:
                    work.metrics.add(part, logged)
                    names = [name for name, _ in _named_floats(metrics, state)]
                    lost = ", ".join(names[i] for i in np.flatnonzero(~finite[num_finite])[:3])
                    raise UserError(
                        f"The training of {part} diverged: step {start + num_finite + 1} made "
                        f"{lost} NaN or infinite; lower its learning rate or correct its data "
                        f"(last checkpoint: {checkpoint or 'none'})."
                    )
                start += length
                last = logged[start] | (_floats(evaluate(state)) if evaluate else {})
                work.metrics.add(part, logged | {start: last})
                # All hosts have logged these steps before the first one saves the state after them.
                if of_first_host(time.monotonic() - saved >= SAVE_SECONDS):
                    if first:
                        checkpoints().save(start, state)
                    checkpoint, saved = start, time.monotonic()
                bar.update(length)
                bar.set_postfix({k: f"{v:.4g}" for k, v in last.items()})
    work.metrics.close(part)
    return state


def forget_checkpoints(work: Workdir, part: str) -> None:
    """Deletes the checkpoints of a part whose result is stored, the damaged ones among them."""
    folder = _checkpoints(work, part)
    for path in (folder, _damaged(folder)):
        shutil.rmtree(path, ignore_errors=True)


@partial(jax.jit, static_argnames=("step", "settings", "size"), donate_argnames="state")
def _chunk(state, start, length, data, step, settings, size):
    """The state after `length` steps, and metrics for `size`; `length` is traced: one program."""

    def body(i, carry):
        state, metrics = carry
        state, values = _checked_step(step, state, start + i, data, settings)
        return state, {name: metrics[name].at[i].set(value) for name, value in values.items()}

    shapes = jax.eval_shape(
        lambda state: _checked_step(step, state, start, data, settings)[1], state
    )
    metrics = {name: jnp.zeros((size, *x.shape), x.dtype) for name, x in shapes.items()}
    return constrain_replicated(lax.fori_loop(0, length, body, (state, metrics)))


def _checked_step(step, state, index, data, settings):
    """A step with a further metric: which of its arrays are finite."""
    state, metrics = step(state, index, data, settings)
    finite = [jnp.isfinite(array).all() for _, array in _named_floats(metrics, state)]
    return state, metrics | {FINITE: jnp.stack(finite)}


def _named_floats(metrics: dict, state: Any) -> list[tuple[str, Any]]:
    """Floats of a step by name; of the gradients, moments in the optimiser's state show NaN."""
    leaves = jax.tree_util.tree_leaves_with_path((metrics, {"state": state}))
    return [
        (jax.tree_util.keystr(path[1:], simple=True, separator="."), leaf)
        for path, leaf in leaves
        if jnp.issubdtype(leaf.dtype, jnp.inexact)
    ]


def _checkpoints(work: Workdir, part: str) -> Path:
    return (work.path / "checkpoints" / part).absolute()


def _damaged(folder: Path) -> Path:
    """Where the damaged checkpoints of a folder are kept until the result is stored."""
    return folder.with_name(f"{folder.name}-damaged")


def _open_checkpoints(folder: Path):
    # Its import of orbax takes .2 s, which a training of less than a second does not need.
    from common.run.checkpoints import Checkpoints

    return Checkpoints(folder, _damaged(folder))


def _floats(values: dict) -> dict[str, float]:
    return {name: float(value) for name, value in jax.device_get(values).items()}
