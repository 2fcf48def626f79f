"""A poster on word embeddings: trained, aligned, matched, correlated with accuracy, ensembled.

Read cbow.py, glove.py and lstm.py for how embeddings are trained, compare.py for how two embeddings
are compared (Table 1), downstream.py for accuracy and ensembles of words or of sentence encoders
(Figures 5 and 6), experiments/ for what is measured, and reports/ for how it is shown.
"""
