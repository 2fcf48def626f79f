"""Runs an experiment of Wasserstein embeddings: objects as small point clouds.

  python -m wasserstein_embed.main --config=configs/wasserstein_embed/images.py --workdir=runs/we

Every value of the config file can be set on the command line, as in --config.num_points=8 or
--config.dataset=fashion_mnist; the file documents each of them. --config.quick runs the whole
experiment on less data. The workdir receives config.json, metrics.jsonl, TensorBoard events,
results.json, table.md and figures. A killed run resumes when the same command is given again.
"""

from common.run.launch import launch

if __name__ == "__main__":
    launch("wasserstein_embed.experiments")
