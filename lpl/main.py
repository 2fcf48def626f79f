"""Runs an experiment of the locality preserving loss: word alignment, or inference (NLI).

  python -m lpl.main --config=configs/lpl/word_alignment.py --workdir=runs/lpl

Every value of the config file can be set from here, as in --config.lpa_mse.beta=2 or
--config.methods=mse_sgd,lpa_mse; --config.quick runs the experiment on less data. A killed run
resumes when the same command is given again.
"""

from common.run.launch import launch

if __name__ == "__main__":
    launch("lpl.experiments")
