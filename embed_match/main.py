r"""Runs an experiment of the poster on aligning, matching and ensembling word embeddings.

  python -m embed_match.main --config=configs/embed_match/match.py --workdir=runs/match

Every value of the config file can be set from here, --config.cbow.epochs=10 or
--config.pairs=C1-C2,C1-glove say; the file has a comment for each. --config.quick runs the whole
path on less. The workdir gets config.json, metrics.jsonl, TensorBoard events, results.json,
table.md and figures; a run that was stopped goes on from there. Trained embeddings are kept in the
cache directory, where the other experiments find them.
"""

from absl import flags
from ml_collections import config_flags

from common import cli
from common.data.wheels import cache_dir
from common.workdir import Workdir

CONFIG = config_flags.DEFINE_config_file(
    "config", None, "The experiment: a file of configs/embed_match.", lock_config=True
)
WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run; made if need be.")
DISTRIBUTED = flags.DEFINE_bool(
    "distributed", False, "Join the other hosts (jax.distributed) before touching a device."
)
flags.mark_flags_as_required(["config", "workdir"])


def main(argv: list[str]) -> None:
    """Runs the experiment that the config names."""
    del argv
    if DISTRIBUTED.value:
        import jax

        jax.distributed.initialize()
    config = cli.settle(CONFIG.value, flags.FLAGS["config"].override_values)
    work = Workdir(WORKDIR.value, config.to_dict())
    from embed_match import experiments  # takes seconds: once the flags are known to be right

    print(cli.choose(experiments.EXPERIMENTS, config.experiment)(config, work, cache_dir()))


if __name__ == "__main__":
    cli.run(main)
