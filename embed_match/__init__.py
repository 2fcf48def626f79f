"""A poster on word embeddings: trained, aligned, matched, correlated with accuracy, ensembled.

Read cbow.py, glove.py and lstm.py for how embeddings are trained, compare.py for how two embeddings
are compared (Table 1), tasks.py for downstream accuracy and for ensembles of words or of sentence
encoders (Figures 5 and 6), and experiments.py for what is measured.
"""
