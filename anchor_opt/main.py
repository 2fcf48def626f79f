r"""Runs an experiment of anchor optimisation: from a few known pairs to many parallel anchors.

  python -m anchor_opt.main --config=configs/anchor_opt/retrieval.py --workdir=runs/ao

Every value of the config file can be set from here, as in --config.num_words=4000 or
--config.methods=gt,seed,bootstrap; the file explains each of them. --config.quick runs the whole
experiment on less data. The workdir receives config.json, metrics.jsonl, TensorBoard events,
results.json, table.md, figures and the anchors that were found. A killed run resumes when the same
command is given again.
"""

from common.run.launch import launch

if __name__ == "__main__":
    launch("anchor_opt.experiments")
