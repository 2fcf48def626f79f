"""Embedding spaces: what encoders and word vectors make of data sets, and pairs of them."""
