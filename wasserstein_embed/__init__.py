"""Objects as small clouds of points, compared by Sinkhorn (Frogner et al. 2019).

To read: cloud.py, the distance, and fixed_point.py, the same at the price of a training loop.
siamese.py and images.py embed images; networks.py, metric_embed.py and graphs.py the nodes of
graphs; word_embed.py and words.py words.
"""
