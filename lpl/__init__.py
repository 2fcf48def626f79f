"""The locality preserving loss (Ganesan et al. 2021): word alignment, and a regulariser for NLI.

To read: loss.py, equations 4 to 8; training.py and maps.py, how a map is trained by it;
baselines.py and transforms.py, what it is compared with; methods.py names the rows of Table 1a.
word_alignment.py (with cases.py and translation.py) and nli_experiment.py (with nli.py and
nli_data.py) run them.
"""
