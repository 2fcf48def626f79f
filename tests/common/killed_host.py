"""Two trainings of a run on two hosts, of which one host kills itself; run as a script.

python -m tests.common.killed_host WORKDIR HOST EVALUATION

The host kills itself at an evaluation, counted from one over both trainings; 0 is none.
"""

import os
import signal
import sys

import jax
import jax.numpy as jnp
from jax import random

from common import parallel
from common.run import tasks, train
from common.run.workdir import Workdir


def step(state, index, data, settings):
    """Descent by the gradient of all rows, split between the hosts, with noise of the step."""
    residual = parallel.mean_over_devices(lambda rows: (rows - state).mean(axis=0), data)
    noise = random.normal(random.key(index), state.shape)
    return state + settings * (residual + noise), {"loss": jnp.sum(residual**2)}


def main(workdir, host, evaluation):
    """The run of one host."""
    jax.distributed.initialize()
    train.SAVE_SECONDS = 0.0
    work = Workdir(f"{workdir}-{jax.process_index()}", {})
    count = 0

    def evaluate(state):
        nonlocal count
        count += 1
        if jax.process_index() == host and count == evaluation:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"norm": jnp.linalg.norm(state)}

    def measure(task):
        data = random.normal(random.key(task.seed), (64, 3))
        loop = {"num_steps": 20, "chunk": 4, "part": task.name, "evaluate": evaluate}
        state = train.run(step, jnp.zeros(3), data, 0.1, work=work, **loop)
        return [task.row("norm", jnp.linalg.norm(state))], {"state": state.tolist()}

    case = tasks.Case("fit", {"experiment": "killed", "dataset": "normal"}, lambda seed: None)
    tasks.run(tasks.grid([case], ["descent"], [0, 1]), measure, work)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
