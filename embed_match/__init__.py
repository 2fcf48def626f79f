"""Word embeddings trained, aligned, matched by transport, correlated and ensembled: the poster.

To read: cbow.py, glove.py and lstm.py, how embeddings are trained; embeddings.py, which there are;
compare.py, how two are compared; tasks.py, what they are used for. matching.py is Table 1,
correlation.py Figure 5, ensembling.py Figure 6.
"""
