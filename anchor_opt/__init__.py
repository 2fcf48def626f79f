"""Anchor optimisation (Cannistraci et al. 2023): from few known pairs to many parallel anchors.

To read: relative.py and problem.py, the task; algorithm1.py, the method as published; bootstrap.py,
search.py and refine.py, ours, and starts.py, where no pair is known; methods.py names them all.
experiments.py runs them on words and, with vision.py and vit.py, on images (Tables 1, 4, 5, 7);
stitching.py and head.py are Tables 2 and 6. For your own vectors: api.py, align.py.
"""
