"""Anchor optimisation (Cannistraci et al. 2023): from few known pairs to many parallel anchors.

To read: relative.py, the problem; algorithm1.py, the method as published; bootstrap.py, search.py
and starts.py, our method; methods.py, all methods by name. experiments.py measures them: on words
(Tables 1, 4, 5; retrieval_report.py), on images (Table 7; vision.py, vit.py) and by stitching
classifiers (Tables 2, 6; stitching.py, head.py). The tool for one's own vectors is the subpackage
align.
"""
