"""Anchor optimisation (Cannistraci et al. 2023): from few known pairs to many parallel anchors.

To read: relative.py and problem.py, what is solved; methods/algorithm1.py, the method as published;
methods/, all methods by name. Each file of configs/anchor_opt has a file of its name in
experiments/, which is a list of cases and a way to show them: runner.py runs the methods on them,
evaluation.py measures what they return, and reports/ has the tables and figures.
"""
