"""Runs an experiment of the poster on aligning, matching and ensembling word embeddings.

  python -m embed_match.main --config=configs/embed_match/match.py --workdir=runs/match

Every value of the config file can be set from here, as in --config.cbow.epochs=10 or
--config.pairs=C1-C2,C1-glove; --config.quick runs the experiment on less data. A killed run resumes
when the same command is given again. Trained embeddings are stored in the cache directory, so that
the other experiments do not train them again.
"""

from common.run.launch import launch

if __name__ == "__main__":
    launch("embed_match.experiments")
