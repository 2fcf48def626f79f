"""Runs an experiment of my paper.

  python -m my_paper.main --config=configs/my_paper/main_table.py --workdir=runs/mine

Every value of the config file can be set from here, as in --config.num_train=500; --config.quick
runs the experiment on less data. A killed run resumes when the same command is given again.
"""

from common.run.launch import launch

if __name__ == "__main__":
    launch("my_paper.experiments")
