"""A run of two parts with checkpoints, small and quick to start, to be killed in tests."""

import jax
import jax.numpy as jnp
from absl import flags

from common import cli, train
from common.workdir import Workdir, write_json

WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")


def step(state, index, data, settings):
    """A random walk: any step lost or taken twice shows in its end."""
    noise = jax.random.normal(jax.random.fold_in(data, index), state.shape)
    return state + noise, {"mean": noise.mean()}


def main(argv: list[str]) -> None:
    """Two random walks; their sums are the rows."""
    del argv
    work = Workdir(WORKDIR.value, {})

    def walk(seed):
        last = train.run(
            step,
            jnp.zeros(9),
            jax.random.key(seed),
            0,
            num_steps=60,
            chunk=6,
            work=work,
            part=f"walk-{seed}",
        )
        return float(last.sum())

    rows = []
    for seed in range(2):
        value = work.part(f"walk-{seed}", lambda: walk(seed))  # noqa: B023
        train.forget_checkpoints(work, f"walk-{seed}")
        rows.append({"metric": "sum", "value": value})
    write_json(work.path / "results.json", rows)


if __name__ == "__main__":
    cli.run(main)
