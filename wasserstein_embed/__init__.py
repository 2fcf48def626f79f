"""Entropic Wasserstein embeddings: objects as small point clouds (Frogner et al. 2019).

Mathematics: cloud.py defines the distances between clouds; metric_embed.py fits a given metric,
siamese.py embeds images, word_embed.py words.
Measurements: graphs.py, images.py and words.py read data, train and evaluate; experiments/ has what
configs run, reports/ the tables and figures.
"""
