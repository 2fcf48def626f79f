"""Entropic Wasserstein embeddings: objects as small point clouds (Frogner et al. 2019).

Mathematics: cloud.py defines the distances between clouds; metric_embed.py fits a given metric,
siamese.py embeds images, word_embed.py words.
Measurements: graphs.py, images.py and words.py read data, train and evaluate; experiments.py turns
configs into their settings; the *_report.py files make tables and figures.
"""
