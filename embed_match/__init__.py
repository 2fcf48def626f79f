"""Word embeddings trained, aligned, matched by transport, correlated and ensembled."""
