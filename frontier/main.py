r"""Runs an experiment on a question that the papers leave open.

  python -m frontier.main --config=configs/frontier/few_pairs.py --workdir=runs/few_pairs

Every value of the config file can be set from here, as in --config.num_rows=1000 or
--config.methods=gt,bootstrap; the file explains each of them. --config.quick runs the whole
experiment on less data. The workdir receives config.json, metrics.jsonl, TensorBoard events,
results.json, table.md, figures and the anchors that were found. A killed run resumes when the same
command is given again.
"""

from common.run.launch import launch

if __name__ == "__main__":
    launch("frontier.experiments")
