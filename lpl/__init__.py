"""The locality preserving loss (Ganesan et al. 2021): word alignment, and a regulariser for NLI.

Read loss.py for equations 4 to 8 and training.py for the maps that are trained with them.
methods.py has the rows of Table 1a, nli.py the network for natural language inference,
experiments/ what is measured, and reports/ how it is shown.
"""
